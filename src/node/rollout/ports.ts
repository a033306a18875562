import type { AgentConfig, SettingChange } from "../../ground/config/index.ts";
import type { RecordNodeEvent } from "../../ground/model/index.ts";
import type { ConfigApi } from "./assigned-config.ts";
import type { HistoryEntry, RefusedVersion, Trial } from "./state.ts";
import type { ConfigVersion, VersionSource } from "./version.ts";

/** One life of the agent, from its start with a configuration to its end. */
export interface Turn {
  /** What is well at this moment, by the names of the health checks, and why the others are not. */
  readonly checks: () => ReadonlyMap<string, "ok" | { readonly reason: string }>;
  /** The stage of the start that the agent is at; undefined once everything of it has begun to work. */
  readonly stage: () => string | undefined;
  /** Takes over settings that may change at once. */
  readonly apply: (config: AgentConfig) => void;
  /** Ends this turn in good order, for another one to begin. */
  readonly beginAnew: (why: string) => void;
  readonly recordEvent: RecordNodeEvent;
  /** What is said about configurations has changed. */
  readonly onReport: () => void;
  /** Undefined: there is no API server. */
  readonly api: ConfigApi | undefined;
}

/** What the agent runs with, and why not with something else. */
export interface RolloutReport {
  readonly active: ReportedVersion;
  /** What the API server or the files want. */
  readonly wanted: ReportedVersion;
  /** The config map that the API server wants, if it wants one. */
  readonly assigned: ReportedVersion | undefined;
  readonly good: ReportedVersion | undefined;
  /** Why what is wanted is not what is active; empty when it is. */
  readonly error: string;
  readonly trial: (Trial & { readonly remainingMs: number }) | undefined;
  /** What does not work at this moment, of what must. */
  readonly missing: string | undefined;
  readonly isFollowed: boolean;
  readonly refused: readonly RefusedVersion[];
  readonly history: readonly HistoryEntry[];
}

export interface ReportedVersion {
  readonly version: string;
  readonly source: VersionSource;
}

/** A trial that was agreed to; it begins with `begin`, so that whoever asked can be answered before. */
export interface AcceptedTrial {
  readonly version: ConfigVersion;
  readonly changes: readonly SettingChange[];
  readonly effect: "at once" | "restart";
  begin(): Promise<void>;
}

/** A configuration was not taken; the message says why, for people. */
export class RolloutRefusal extends Error {
  override readonly name = "RolloutRefusal";
}
