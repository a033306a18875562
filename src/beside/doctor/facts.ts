import type { ConfigDrift, ConfigReport, EffectiveSetting } from "../../ground/config/index.ts";
import type { AgentFacts } from "./gather/agent.ts";
import type { ApiFacts } from "./gather/api.ts";
import type { CertificateFact } from "./gather/certificates.ts";
import type { DiskFacts } from "./gather/disk.ts";
import type { FileFact } from "./gather/files.ts";
import type { GroundFacts } from "./gather/ground.ts";
import type { KernelFacts } from "./gather/kernel.ts";
import type { KernelLogFacts } from "./gather/kernel-log.ts";
import type { KubeProxyFacts } from "./gather/kube-proxy.ts";
import type { ExaminedNetwork } from "./gather/network.ts";
import type { ExaminedPods } from "./gather/pods.ts";
import type { ProcessFact } from "./gather/processes.ts";
import type { ExaminedRuntime } from "./gather/runtime.ts";
import type { SameMachines } from "./gather/same-machines.ts";
import type { ServingFacts } from "./gather/serving.ts";
import type { TimeFacts } from "./gather/time.ts";
import type { UnitFacts } from "./gather/unit.ts";

/** Everything that checks look at. Each piece is gathered by itself, and may be missing by itself. */
export interface FactValues {
  readonly agent: AgentFacts;
  readonly config: ConfigFacts;
  readonly processes: readonly ProcessFact[];
  readonly unit: UnitFacts;
  readonly configFiles: ConfigFiles;
  readonly kubeProxy: KubeProxyFacts | undefined;
  readonly certificates: readonly CertificateFact[];
  readonly serving: ServingFacts;
  readonly ground: GroundFacts;
  readonly kernel: KernelFacts;
  readonly network: ExaminedNetwork;
  readonly runtime: ExaminedRuntime;
  readonly disk: DiskFacts;
  readonly time: TimeFacts;
  readonly api: ApiFacts | undefined;
  /** Undefined: there is no cluster, or the machine has no identity. */
  readonly sameMachines: SameMachines | undefined;
  /** Undefined: no agent runs. */
  readonly pods: ExaminedPods | undefined;
  readonly kernelLog: KernelLogFacts;
}

export type FactName = keyof FactValues;

/** A piece that was found out, or why it was not. */
export type Fact<Value> = { readonly value: Value } | { readonly missing: string; readonly error?: unknown };

export type Facts = { readonly [Name in FactName]: Fact<FactValues[Name]> };

/** A check needs what nobody could find out: it comes to `unknown`, with this reason. */
export class NotKnown extends Error {
  override readonly name = "NotKnown";
}

export function known<Value>(fact: Fact<Value>): Value {
  if ("missing" in fact) throw new NotKnown(fact.missing);
  return fact.value;
}

/** The configuration in effect, or the one that an agent would start with. */
export interface ConfigFacts {
  readonly report: ConfigReport;
  /** Whose it is, in words: for the head of the report. */
  readonly subject: string;
  /** Whether the files say something else by now; undefined without a running agent. */
  readonly drift: ConfigDrift | undefined;
}

/** The files of the configuration, as they lie there. */
export interface ConfigFiles {
  /** --config and every drop-in of --config-dir. */
  readonly config: readonly FileFact[];
  /** --kubeconfig, --bootstrap-kubeconfig, and the files with keys that they name. Empty: stand-alone. */
  readonly kubeconfig: readonly FileFact[];
  /** Undefined: none is set. */
  readonly clientCa: FileFact | undefined;
}

/** A setting by the path of its field, or by the flag with its dashes. */
export function setting({ report }: ConfigFacts, name: string): EffectiveSetting {
  const list = name.startsWith("--") ? report.flags : report.fields;
  const found = list.find((each) => each.name === name);
  if (found === undefined) throw new NotKnown(`the agent does not say what ${name} is`);
  return found;
}

export function settingText(config: ConfigFacts, name: string): string {
  const { value } = setting(config, name);
  return value === undefined ? "" : String(value);
}
