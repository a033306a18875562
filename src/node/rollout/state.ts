import type { VersionId } from "./version.ts";

/** What is known of configurations; all of it is on disk before anything is done about it. */
export interface RolloutState {
  /** The last one that is known to work. */
  readonly good: KnownGood | undefined;
  /** One that a person tried and wants in place of what the files (or the config map) say. */
  readonly kept: KeptVersion | undefined;
  readonly trial: Trial | undefined;
  /** What the API last wanted; undefined: the files count. */
  readonly assigned: AssignedVersion | undefined;
  /** Those that were given up, the latest last. */
  readonly refused: readonly RefusedVersion[];
  /** What happened, the latest last. */
  readonly history: readonly HistoryEntry[];
}

export interface KnownGood {
  readonly version: VersionId;
  /** Which checks passed with it; they must pass with the next one too. */
  readonly needs: readonly string[];
}

export interface KeptVersion {
  readonly version: VersionId;
  /** It counts as long as this is what would be used without it. */
  readonly insteadOf: VersionId;
}

export interface AssignedVersion {
  readonly version: VersionId;
  readonly by: "flag" | "node";
}

/** A configuration in use of which is not known whether it works. */
export interface Trial {
  readonly version: VersionId;
  /** On the wall clock, for people: it may jump, so nothing is decided by it. */
  readonly begunAt: number;
  readonly forMs: number;
  /** How often a process has begun with it without ending in good order. Written before each start. */
  readonly starts: number;
  readonly needs: readonly string[];
  /** Goes back when its time is over, unless somebody says that it is to stay. */
  readonly mustBeKept: boolean;
}

export type RefusalKind =
  /** The loader refuses it. */
  | "invalid"
  /** The agent could not start with it, or lost something that worked before. */
  | "harmful"
  /** The process ended again and again. */
  | "crashed"
  | "not kept"
  /** It changes what may not change while containers run. */
  | "while running";

export interface RefusedVersion {
  readonly version: VersionId;
  readonly kind: RefusalKind;
  readonly why: string;
  readonly at: number;
  /**
   * `none`: it was to blame, since the one before works. `open`: that is not known yet. `shared`: the one before did not
   * work either, so it may have been the machine.
   */
  readonly doubt: "none" | "open" | "shared";
  /** How often it was tried again because of a doubt. */
  readonly chances: number;
}

export interface HistoryEntry {
  readonly at: number;
  readonly version: VersionId;
  /** As `describeSource` has it. */
  readonly source: string;
  readonly what: "trial" | "good" | "kept" | "rolled back" | "refused" | "lost";
  readonly why: string;
}

export const emptyState: RolloutState = {
  good: undefined,
  kept: undefined,
  trial: undefined,
  assigned: undefined,
  refused: [],
  history: [],
};
