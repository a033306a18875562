import type { Clock, Logger } from "../../ground/base/index.ts";
import type { IdentifiedPod, Problem } from "../../ground/model/index.ts";

/** What a source found wrong with one of its manifests, told once per change. */
export interface ManifestReport {
  readonly source: "file" | "http";
  /** Path of the file (or of the directory, when that cannot be read), or the URL. */
  readonly file: string;
  /** Empty when what was wrong before is well again or gone. Warnings alone do not keep a manifest from being used. */
  readonly problems: readonly Problem[];
  /** Pods of the last good version, which go on running in spite of the problems. */
  readonly keeping: readonly IdentifiedPod[];
}

/** Where sources tell of bad manifests. Never throws, never waits. */
export type ReportProblem = (report: ManifestReport) => void;

export interface SourcePorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly reportProblem: ReportProblem;
  /** Takes the complete list of pods this source wants; waits while its reader is behind. */
  readonly deliver: (pods: readonly IdentifiedPod[], signal: AbortSignal) => Promise<void>;
}
