import { isDeepStrictEqual } from "node:util";
import type { AgentConfig, LoadResult, Origin } from "./agent-config.ts";
import { certDirOf } from "./cert-directory.ts";
import { type EffectiveSetting, effectiveFields, effectiveFlags } from "./effective.ts";

/** An effective configuration as it is shown to whoever examines the node. */
export interface ConfigReport {
  readonly nodeName: string;
  readonly rootDir: string;
  readonly certDir: string;
  /** Every field of the file, by its path. */
  readonly fields: readonly EffectiveSetting[];
  /** The flags that are no fields. */
  readonly flags: readonly EffectiveSetting[];
  readonly gates: Readonly<Record<string, boolean>>;
}

export function configReport(config: AgentConfig): ConfigReport {
  const { rootDir } = config.flags;
  return {
    nodeName: config.nodeName,
    rootDir,
    certDir: certDirOf(config, rootDir),
    fields: effectiveFields(config),
    flags: effectiveFlags(config),
    gates: Object.fromEntries(config.gates.all.map(({ name, enabled }) => [name, enabled])),
  };
}

/** Whether an agent that is started now, with the same flags, would get the same configuration. */
export type ConfigDrift =
  | { readonly state: "same" }
  | { readonly state: "different"; readonly settings: readonly ChangedSetting[] }
  | { readonly state: "invalid"; readonly problem: string };

export interface ChangedSetting {
  readonly name: string;
  readonly running: unknown;
  readonly next: unknown;
  /** Where the next value comes from. */
  readonly origin: Origin;
}

export function configDrift(running: AgentConfig, next: LoadResult): ConfigDrift {
  if (next.kind === "invalid") return { state: "invalid", problem: next.message };
  if (next.kind !== "config") return { state: "same" };
  const settingsOf = (config: AgentConfig): EffectiveSetting[] => [
    ...effectiveFields(config),
    ...effectiveFlags(config),
  ];
  const before = new Map(settingsOf(running).map(({ name, value }) => [name, value]));
  const settings = settingsOf(next.config)
    .filter(({ name, value }) => !isDeepStrictEqual(before.get(name), value))
    .map(({ name, value, origin }) => ({ name, running: before.get(name), next: value, origin }));
  return settings.length === 0 ? { state: "same" } : { state: "different", settings };
}
