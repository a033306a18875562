import type { LedgerView } from "../../ground/base/index.ts";
import type { ObservedPod, Pod, PodUid, PodViewChange } from "../../ground/model/index.ts";

/** What is shown of the pods to who asks; the pod engine stands behind it. */
export interface LocalViews {
  /** Every pod the agent was told to run, with the status as the agent sees it now. */
  pods(): readonly Pod[];
  /** Under which uid the agent runs what the API calls by this one: the uid of a mirror stands for its static pod. */
  ownUid(apiUid: string): PodUid;
  /** Calls the listener for each change from now on until the returned function is called. */
  watchPods(listener: (change: PodViewChange) => void): () => void;
  ledger(uid: PodUid): LedgerView | undefined;
}

/** What the agent would do, as it would plan it now; undefined: it is configured not to. */
export interface Plans {
  shutdown(): object | undefined;
}

/** The verbosity of the log, which may change at run time. */
export interface LogVerbosity {
  verbosity: number;
}

/** What the runtime has of a pod. */
export interface RuntimeViews {
  /** As it was last seen. */
  latest(uid: PodUid): ObservedPod | undefined;
  inspect(uid: PodUid, signal: AbortSignal): Promise<ObservedPod>;
}

/**
 * What the agent would do, by the name of the command that asks: the real planner without effects. Rejects with an error
 * whose `name` is `DryRunQuestionError` when the question makes no sense.
 */
export type DryRuns = ReadonlyMap<string, DryRun>;
export type DryRun = (question: URLSearchParams, signal: AbortSignal) => Promise<unknown>;
