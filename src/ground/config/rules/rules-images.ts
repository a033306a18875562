import { formatDuration } from "../../base/index.ts";
import { milliUnits, tryParseQuantity } from "../../model/index.ts";
import { label } from "../fields/fields.ts";
import { type RuleContext, shown, words } from "./rule-context.ts";

/** Runtime, images, container logs, restarts. */
export function checkImages(context: RuleContext): void {
  const { config, invalid, isOn } = context;
  if (config.containerRuntimeEndpoint === "") {
    invalid("containerRuntimeEndpoint", `the ${label("containerRuntimeEndpoint")} was not specified or empty`);
  }
  if (config.imageGCLowThresholdPercent >= config.imageGCHighThresholdPercent) {
    const low = `${label("imageGCLowThresholdPercent")} ${config.imageGCLowThresholdPercent}`;
    const high = `${label("imageGCHighThresholdPercent")} ${config.imageGCHighThresholdPercent}`;
    invalid("imageGCLowThresholdPercent", `${low} must be less than ${high}`);
  }
  checkImageAge(context);
  if (config.serializeImagePulls && (config.maxParallelImagePulls ?? 0) > 1) {
    const rule = `cannot be larger than 1 unless ${label("serializeImagePulls")} is set to false`;
    invalid("maxParallelImagePulls", `maxParallelImagePulls ${config.maxParallelImagePulls} ${rule}`);
  }
  checkLogSize(context);
  checkCrashLoop(context);
  if (isOn("KubeletEnsureSecretPulledImages")) checkPullPolicy(context);
  else checkNoPullPolicy(context);
}

function checkImageAge({ config, invalid, isOn }: RuleContext): void {
  const age = formatDuration(config.imageMaximumGCAgeMs);
  if (config.imageMaximumGCAgeMs !== 0 && !isOn("ImageMaximumGCAge")) {
    const rule = "ImageMaximumGCAge feature gate is required for Kubelet configuration option imageMaximumGCAge";
    invalid("imageMaximumGCAge", `imageMaximumGCAge ${age}: ${rule}`);
  }
  if (config.imageMaximumGCAgeMs < 0) invalid("imageMaximumGCAge", `imageMaximumGCAge ${age} must not be negative`);
  if (config.imageMaximumGCAgeMs > 0 && config.imageMaximumGCAgeMs <= config.imageMinimumGCAgeMs) {
    const least = `${label("imageMinimumGCAge")} ${formatDuration(config.imageMinimumGCAgeMs)}`;
    invalid("imageMaximumGCAge", `imageMaximumGCAge ${age} must be greater than ${least}`);
  }
}

function checkLogSize({ config, invalid }: RuleContext): void {
  const size = tryParseQuantity(config.containerLogMaxSize);
  const isWhole = size !== undefined && milliUnits(size) % 1000n === 0n;
  if (isWhole && BigInt.asIntN(64, milliUnits(size) / 1000n) === milliUnits(size) / 1000n) return;
  const rule = "must be a whole number of bytes, such as 10Mi; a negative one disables rotation";
  invalid("containerLogMaxSize", `${label("containerLogMaxSize")} ${shown(config.containerLogMaxSize)} ${rule}`);
}

function checkCrashLoop({ config, invalid, isOn }: RuleContext): void {
  const path = "crashLoopBackOff.maxContainerRestartPeriod";
  const period = config.crashLoopBackOff.maxContainerRestartPeriodMs;
  if (period === undefined) return;
  const found = `${path} ${formatDuration(period)}`;
  if (!isOn("KubeletCrashLoopBackOffMax")) {
    invalid(path, `FeatureGate KubeletCrashLoopBackOffMax not enabled, ${found} must not be set`);
  } else if (Math.trunc(period) < 1_000 || Math.trunc(period) > 300_000) {
    invalid(path, `${found} must be set between 1s and 300s`);
  }
}

const pullPolicies = ["NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"];

function checkPullPolicy({ config, invalid }: RuleContext): void {
  const policy = config.imagePullCredentialsVerificationPolicy;
  const allowlist = config.preloadedImagesVerificationAllowlist;
  if (!pullPolicies.includes(policy)) {
    const field = "imagePullCredentialsVerificationPolicy";
    invalid(field, `option ${shown(policy)} specified for ${field}. Valid options are ${words(pullPolicies)}`);
  }
  if (allowlist.length > 0 && policy !== "NeverVerifyAllowlistedImages") {
    const field = "preloadedImagesVerificationAllowlist";
    const rule = 'can\'t be set if imagePullCredentialsVerificationPolicy is not "NeverVerifyAllowlistedImages"';
    invalid(field, `${field} ${shown(allowlist)} ${rule}`);
    return;
  }
  for (const [index, pattern] of allowlist.entries()) {
    const reason = imagePatternProblem(pattern);
    if (reason === undefined) continue;
    const field = `preloadedImagesVerificationAllowlist[${index}]`;
    invalid(field, `invalid image pattern in ${field} ${shown(pattern)}: ${reason}`);
  }
}

function checkNoPullPolicy({ config, invalid }: RuleContext): void {
  const rule = "must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled";
  const { imagePullCredentialsVerificationPolicy: policy, preloadedImagesVerificationAllowlist: allowlist } = config;
  if (policy !== "") {
    const field = "imagePullCredentialsVerificationPolicy";
    invalid(field, `${field} ${shown(policy)} ${rule}`);
  }
  if (allowlist.length > 0) {
    const field = "preloadedImagesVerificationAllowlist";
    invalid(field, `${field} ${shown(allowlist)} ${rule}`);
  }
}

const domain = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
const component = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const fullImageName = new RegExp(`^${domain}(?:\\.${domain})*(?::[0-9]+)?(?:/${component})+$`);

/** What keeps a name from being an image without tag or digest, or such a path followed by slash and star. */
function imagePatternProblem(pattern: string): string | undefined {
  if (pattern !== pattern.trim()) return "leading/trailing spaces are not allowed";
  const isWildcard = pattern.endsWith("/*");
  const name = isWildcard ? pattern.slice(0, -1) : pattern;
  if (name === "") return "the supplied pattern is too short";
  if (name.includes("*")) return "not a valid wildcard pattern, only patterns ending with '/*' are allowed";
  if (isWildcard) return name === "/" ? "at least registry hostname is required" : undefined;
  if (/@|:[^/]*$/.test(name)) return "neither tag nor digest is accepted in an image reference";
  if (!fullImageName.test(name) || !/[.:]|^localhost$/.test(name.split("/")[0] ?? "")) {
    return "failed to parse as an image name; wanted registry/path in full";
  }
  return undefined;
}
