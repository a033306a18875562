import type { ContainerId, PodUid } from "../../ground/model/index.ts";

/**
 * What probes and hooks need of the runtime. `timeoutMs` 0 means no limit. A command that fails or runs too long is an
 * answer; rejects when the runtime itself fails, the error's message being what users read in the event.
 */
export type ExecInContainer = (
  id: ContainerId,
  command: readonly string[],
  timeoutMs: number,
  signal: AbortSignal,
) => Promise<ExecResult>;

export type ExecResult =
  | {
      readonly type: "exited";
      readonly exitCode: number;
      readonly stdout: Uint8Array;
      readonly stderr: Uint8Array;
    }
  | { readonly type: "timedOut" };

/** Where results survive a restart of the agent. */
export interface ProbeStore {
  /** What was saved of the pod, or undefined. Read once per pod; never throws. */
  load(uid: PodUid): readonly SavedResult[] | undefined;
  save(uid: PodUid, results: readonly SavedResult[]): Promise<void>;
  remove(uid: PodUid): Promise<void>;
}

export interface SavedResult {
  readonly container: string;
  readonly kind: ProbeKind;
  readonly id: ContainerId;
  readonly result: ProbeResult;
}

export const probeKinds = ["startup", "liveness", "readiness"] as const;
export type ProbeKind = (typeof probeKinds)[number];
export type ProbeResult = "success" | "failure" | "unknown";

/** One finished attempt, for metrics. */
export interface ProbeMeasurement {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly kind: ProbeKind;
  readonly result: "successful" | "failed" | "unknown";
  readonly durationMs: number;
  /** How much later than planned the attempt began. */
  readonly lateMs: number;
}
