import { label } from "../fields/fields.ts";
import { taintEffects } from "../flags/flag-kinds.ts";
import { parseNodeIPs } from "../flags/node-ip.ts";
import { labelValueProblems, qualifiedNameProblems } from "../text/label-syntax.ts";
import { KUBERNETES_VERSION } from "../version.ts";
import { type RuleContext, shown, words } from "./rule-context.ts";

/** The Node object, sysctls, metrics, and the flags that are no fields. */
export function checkNode(context: RuleContext): void {
  checkTaints(context);
  checkSysctls(context);
  checkFlags(context);
  checkDynamicConfig(context);
  const { config, invalid } = context;
  if (config.runOnce) {
    invalid("runOnce", `${label("runOnce")} true, Runonce mode has been deprecated and should not be set`);
  }
  const hidden = config.showHiddenMetricsForVersion;
  const previous = previousMinor();
  if (hidden !== "" && hidden !== previous) {
    const rule = `must be omitted or have the value '${previous}'. Only the previous minor version is allowed`;
    invalid("showHiddenMetricsForVersion", `showHiddenMetricsForVersion ${shown(hidden)} ${rule}`);
  }
}

function previousMinor(): string {
  const [major = "", minor = ""] = KUBERNETES_VERSION.slice(1).split(".");
  return `${major}.${Number(minor) - 1}`;
}

function checkTaints({ config, invalid }: RuleContext): void {
  for (const [index, taint] of config.registerWithTaints.entries()) {
    const path = `registerWithTaints[${index}]`;
    const written = `${taint.key}=${taint.value ?? ""}:${taint.effect}`;
    const name = `${path} (--register-with-taints)`;
    const reasons = [
      ...qualifiedNameProblems(taint.key).map((reason) => `key: ${reason}`),
      ...labelValueProblems(taint.value ?? "").map((reason) => `value: ${reason}`),
    ];
    if (taint.effect !== "" && !taintEffects.includes(taint.effect)) {
      reasons.push(`effect ${shown(taint.effect)}: must be one of ${words(taintEffects)}`);
    }
    if (reasons.length > 0) invalid(path, `${name}: invalid taint: ${written}: ${reasons.join("; ")}`);
    if (taint.timeAdded !== undefined) {
      invalid(path, `${name}: taint.timeAdded ${shown(taint.timeAdded)} must not be set`);
    }
  }
}

const segment = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const sysctlFormat = `(${segment}[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]`;
const sysctlPattern = new RegExp(`^${sysctlFormat}$`);

const namespacedSysctls: ReadonlySet<string> = new Set([
  "kernel.sem",
  "kernel.shmall",
  "kernel.shmmax",
  "kernel.shmmni",
  "kernel.shm_rmid_forced",
  "kernel.shm",
  "kernel.msgmax",
  "kernel.msgmnb",
  "kernel.msgmni",
  "kernel.msg",
]);
const namespacedGroups = ["net.", "fs.mqueue."];

function checkSysctls({ config, invalid }: RuleContext): void {
  for (const [index, pattern] of config.allowedUnsafeSysctls.entries()) {
    const path = `allowedUnsafeSysctls[${index}]`;
    const name = `${path} (--allowed-unsafe-sysctls)`;
    if (pattern.length > 253 || !sysctlPattern.test(pattern)) {
      const rule = `must have at most 253 characters and match regex ${sysctlFormat}`;
      invalid(path, `${name}: sysctl ${shown(pattern)} ${rule}`);
      continue;
    }
    const prefix = dotted(pattern).split("*")[0] ?? "";
    const isNamespaced = namespacedSysctls.has(prefix) || namespacedGroups.some((group) => prefix.startsWith(group));
    if (!isNamespaced) invalid(path, `${name}: the sysctls ${shown(prefix)} are not known to be namespaced`);
  }
}

/** net/ipv4/conf/eth0.1/x and net.ipv4.conf.eth0/1.x name the same sysctl. */
function dotted(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  if (separator !== "/") return name;
  return name.replace(/[./]/g, (character) => (character === "/" ? "." : "/"));
}

const configMapPattern = /^[a-z0-9][-a-z0-9]*\/[a-z0-9][-.a-z0-9]*(\/[-._a-zA-Z0-9]+)?$/;
const shortestTrialMs = 5_000;

function checkDynamicConfig({ flags, problem }: RuleContext): void {
  const { dynamicConfigDir, dynamicConfigMap, dynamicConfigTrialMs, kubeconfig } = flags;
  if (dynamicConfigTrialMs < shortestTrialMs) {
    problem(
      "--dynamic-config-trial",
      `--dynamic-config-trial ${dynamicConfigTrialMs} ms is too short: want 5s or more`,
    );
  }
  if (dynamicConfigMap === "") return;
  const wanted = "want namespace/name or namespace/name/key";
  if (!configMapPattern.test(dynamicConfigMap)) {
    problem("--dynamic-config-map", `--dynamic-config-map ${shown(dynamicConfigMap)} names no config map: ${wanted}`);
  }
  if (dynamicConfigDir === "") problem("--dynamic-config-map", "--dynamic-config-map needs --dynamic-config-dir");
  if (kubeconfig === "") problem("--dynamic-config-map", "--dynamic-config-map needs --kubeconfig");
}

function checkFlags({ flags, cloudProvider, nodeIP, dashboardAddress, problem }: RuleContext): void {
  if (cloudProvider !== "" && cloudProvider !== "external") {
    const rule = "built-in cloud providers are disabled. Please set --cloud-provider=external to use an external one";
    problem("--cloud-provider", `cloud provider ${shown(cloudProvider)} was specified, but ${rule}`);
  }
  const { cloudInstance } = flags;
  if (cloudInstance !== "" && cloudProvider !== "") {
    problem("--cloud-instance", "--cloud-instance and --cloud-provider: the same is to be said by two; leave one out");
  }
  if (cloudInstance !== "" && !/^(\/|https?:\/\/.)/.test(cloudInstance)) {
    const wanted = "want the absolute path of a program, or an address with http:// or https://";
    problem("--cloud-instance", `--cloud-instance ${shown(cloudInstance)} can't be asked: ${wanted}`);
  }
  const { problem: reason } = parseNodeIPs(nodeIP);
  if (reason !== undefined) problem("--node-ip", `bad --node-ip ${shown(nodeIP)}: ${reason}`);
  if (dashboardAddress !== "" && flags.dashboardAddress === undefined) {
    problem("--dashboard-address", `bad --dashboard-address ${shown(dashboardAddress)}: must be HOST:PORT`);
  }
  if (flags.exitOnLockContention && flags.lockFile === "") {
    problem(
      "--exit-on-lock-contention",
      "cannot exit on lock file contention: no lock file specified; give --lock-file",
    );
  }
  if (flags.rootDir === "") problem("--root-dir", 'invalid root directory ""; --root-dir must not be empty');
}
