import { deepFreeze } from "../base/index.ts";
import type {
  AgentConfig,
  ConfigIo,
  ConfigProblem,
  ConfigWarning,
  InvalidConfig,
  KubeletFlags,
  LoadResult,
  Origin,
} from "./agent-config.ts";
import { buildCandidate, type KubeletCandidate } from "./candidate.ts";
import { applyDefaults } from "./defaults.ts";
import { FieldStore } from "./fields/field-store.ts";
import { mergeDropIns } from "./files/drop-ins.ts";
import { type FileResult, type FlagGates, loadConfigFile, placeOf } from "./files/load-config-file.ts";
import { applyFlags, buildFlags } from "./flags/apply-flags.ts";
import { flagTexts } from "./flags/flag-text.ts";
import { helpText, versionText } from "./flags/help.ts";
import { parseNodeIPs } from "./flags/node-ip.ts";
import { nodeLabelProblems } from "./flags/node-labels.ts";
import { type ParsedFlags, parseFlags } from "./flags/parse-flags.ts";
import { GateSet } from "./gates/gates.ts";
import type { KubeletConfiguration } from "./kubelet-configuration.ts";
import type { RuleContext } from "./rules/rule-context.ts";
import { checkRules } from "./rules/rules.ts";
import { checkLogging } from "./rules/rules-logging.ts";
import { insecureCipherSuites } from "./rules/rules-server.ts";
import { KUBERNETES_VERSION } from "./version.ts";

/**
 * From the command line (without the program's name) to the effective configuration. The steps and their order are
 * those of the kubelet's start: a problem in one keeps the later ones from being looked at, but within a step every
 * problem is reported.
 */
export async function loadConfig(argv: readonly string[], io: ConfigIo): Promise<LoadResult> {
  const parsed = parseFlags(argv);
  const warnings: ConfigWarning[] = parsed.deprecations.map((message) => ({ kind: "deprecated-flag", message }));
  const fail = (prefix: string, problems: readonly ConfigProblem[]): InvalidConfig =>
    invalidConfig(prefix, problems, warnings);

  if (parsed.problems.length > 0) return fail("failed to parse kubelet flag: ", parsed.problems);
  const [command] = parsed.positional;
  if (command !== undefined) return fail("", [{ message: `unknown command ${command}` }]);
  if (parsed.values.get("help") === true) return { kind: "help", text: helpText() };
  const version = versionText(parsed.values.get("version"));
  if (version !== undefined) return { kind: "version", text: version };

  const gates = new GateSet();
  const flagGates = (parsed.values.get("feature-gates") ?? {}) as FlagGates;
  const wrongGates = gates.set(flagGates).map(({ message }) => ({ message, field: "--feature-gates" }));
  if (wrongGates.length > 0) return fail("failed to set feature gates from initial flags-based config: ", wrongGates);

  const flags = buildFlags(parsed);
  const wrongLabels = nodeLabelProblems(flags.nodeLabels);
  if (wrongLabels.length > 0) return fail("failed to validate kubelet flags: ", wrongLabels);

  const base = await loadBase(flags, flagGates, io);
  warnings.push(...base.warnings);
  if (base.problems.length > 0) {
    return fail(`failed to load kubelet config file, path: ${flags.configFile}, error: `, base.problems);
  }
  const { store } = base;
  if (flags.configDir !== "") {
    const merged = await mergeDropIns(store, flags.configDir, flagGates, io);
    warnings.push(...merged.warnings);
    if (merged.problems.length > 0) return fail("failed to merge kubelet configs: ", merged.problems);
  }
  applyFlags(store, parsed);
  gates.set(store.get("featureGates") ?? {});
  warnings.push(...gates.warnings().map((message): ConfigWarning => ({ kind: "feature-gate", message })));

  const candidate = buildCandidate(store);
  const problems: ConfigProblem[] = [];
  const context = await ruleContext({ config: candidate, flags, parsed, gates, store, problems }, io);
  checkLogging(context);
  if (problems.length > 0) return fail("initialize logging: ", problems);
  checkRules(context);
  const nodeName = (flags.hostnameOverride || io.hostname()).trim().toLowerCase();
  if (nodeName === "") context.problem("--hostname-override", "empty hostname is invalid; give --hostname-override");
  if (problems.length > 0) return fail("failed to validate kubelet configuration, error: ", problems);

  warnings.push(...notes(candidate, flags, parsed));
  // The rules have just narrowed every string of the candidate to the words its type allows.
  const kubelet = candidate as KubeletConfiguration;
  const config: AgentConfig = {
    kubelet: deepFreeze(kubelet),
    flags: deepFreeze(flags),
    gates: gates.freeze(),
    nodeName,
    reportedVersion: reportedVersion(parsed),
    flagTexts: deepFreeze(flagTexts(parsed.values)),
    warnings: deepFreeze(warnings),
    origins: deepFreeze({ ...store.origins(), ...flagOrigins(parsed) }),
  };
  return { kind: "config", config: Object.freeze(config) };
}

async function loadBase(flags: KubeletFlags, flagGates: FlagGates, io: ConfigIo): Promise<FileResult> {
  if (flags.configFile !== "") return loadConfigFile(flags.configFile, flagGates, io);
  const store = new FieldStore();
  const gates = new GateSet();
  gates.set(flagGates);
  applyDefaults(store, "legacy", gates);
  return { store, problems: [], warnings: [] };
}

interface RuleInput {
  readonly config: KubeletCandidate;
  readonly flags: KubeletFlags;
  readonly parsed: ParsedFlags;
  readonly gates: GateSet;
  readonly store: FieldStore;
  readonly problems: ConfigProblem[];
}

async function ruleContext(input: RuleInput, io: ConfigIo): Promise<RuleContext> {
  const { config, flags, parsed, gates, store, problems } = input;
  const problem = (field: string, message: string): void => {
    const place = placeOf(originOf(store, field));
    problems.push({ message, field, ...(place === undefined ? {} : { place }) });
  };
  return {
    config,
    flags,
    cloudProvider: String(parsed.values.get("cloud-provider") ?? ""),
    nodeIP: String(parsed.values.get("node-ip") ?? ""),
    dashboardAddress: String(parsed.values.get("dashboard-address") ?? ""),
    cgroupVersion: await io.cgroupVersion(),
    onlineCpus: await io.onlineCpus(),
    isOn: (gate) => gates.isOn(gate),
    problem,
    invalid: (field, message) => problem(field, `invalid configuration: ${message}`),
  };
}

/** The origin of a field, or of the field that the list entry or map key belongs to. */
function originOf(store: FieldStore, field: string): Origin | undefined {
  return store.originOf(field) ?? store.originOf(field.replace(/\[.*$/, ""));
}

function flagOrigins({ values }: ParsedFlags): Record<string, Origin> {
  return Object.fromEntries([...values.keys()].map((name) => [`--${name}`, { from: "flag", flag: name }]));
}

function reportedVersion({ values }: ParsedFlags): string {
  const version = values.get("version");
  return typeof version === "string" && version.startsWith("v") ? version : KUBERNETES_VERSION;
}

/** What is accepted but worth a word. */
function notes(config: KubeletCandidate, flags: KubeletFlags, parsed: ParsedFlags): ConfigWarning[] {
  const notes: string[] = [];
  if (parsed.values.has("pod-infra-container-image")) {
    notes.push(
      "--pod-infra-container-image will not be pruned by the image garbage collector in kubelet and should also be set in the remote runtime",
    );
  }
  const { kubeletCgroups, kubeReservedCgroup } = config;
  if (kubeletCgroups !== "" && kubeReservedCgroup !== "" && !kubeletCgroups.startsWith(kubeReservedCgroup)) {
    notes.push("unsupported configuration:KubeletCgroups is not within KubeReservedCgroup");
  }
  for (const address of parseNodeIPs(String(parsed.values.get("node-ip") ?? "")).ignored) {
    notes.push(`Could not parse some node IP(s), ignoring them: --node-ip ${JSON.stringify(address)}`);
  }
  for (const suite of config.tlsCipherSuites.filter((name) => insecureCipherSuites.includes(name))) {
    notes.push(`Use of insecure cipher detected: ${suite}`);
  }
  if (config.tlsMinVersion === "VersionTLS13" && config.tlsCipherSuites.length > 0) {
    notes.push("TLS 1.3 cipher suites are not configurable, ignoring tlsCipherSuites");
  }
  if (flags.kubeconfig === "" && flags.bootstrapKubeconfig !== "") {
    notes.push("--bootstrap-kubeconfig has no effect without --kubeconfig: running without an API server");
  }
  return notes.map((message) => ({ kind: "note", message }));
}

function invalidConfig(
  prefix: string,
  problems: readonly ConfigProblem[],
  warnings: readonly ConfigWarning[],
): InvalidConfig {
  const texts = problems.map(describeConfigProblem);
  const joined = texts.length === 1 ? (texts[0] ?? "") : `[${texts.join(", ")}]`;
  return deepFreeze({ kind: "invalid", message: prefix + joined, step: prefix, problems, warnings });
}

/** The problem with the place it was written at. */
export function describeConfigProblem({ message, place }: ConfigProblem): string {
  return place === undefined || message.includes(place) ? message : `${message} (${place})`;
}
