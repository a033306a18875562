import type { IncomingMessage, ServerResponse } from "node:http";
import type { LedgerView, TaskScope } from "../../ground/base/index.ts";
import type { HostPort } from "../../ground/config/index.ts";
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

/** Image pulls under way or waiting for their turn; the runtime is asked at most once a second, however many look. */
export type LookAtPulls = (signal: AbortSignal) => Promise<readonly ShownPull[]>;

export interface ShownPull {
  readonly image: string;
  readonly podUids: readonly string[];
  /** undefined: it waits for its turn. */
  readonly ageMs: number | undefined;
  /** undefined: not known, or the runtime can't tell. */
  readonly progress?: {
    readonly bytes: number;
    readonly totalBytes: number;
    readonly layers: { readonly done: number; readonly total: number };
  };
}

/** What the agent would do, as it would plan it now; undefined: it is configured not to. */
export interface Plans {
  shutdown(): object | undefined;
}

/** What the agent knows of itself, for those who examine the node. */
export interface SelfViews {
  /** Every setting, where it comes from, and whether the files say something else by now. */
  config(): Promise<object>;
  /** Versions, health, runtime, certificates, watches, events, and what pods wait for. */
  state(): object;
  /** Told what `nodelet doctor` has found. */
  examined(found: DoctorSummary): void;
}

/** What an examination of this node came to: how many checks to each state. */
export interface DoctorSummary {
  readonly atMs: number;
  readonly counts: ReadonlyMap<string, number>;
}

/**
 * Where commands ask about configurations and have them tried. Refusals are errors whose `name` is `RolloutRefusal`.
 */
export interface RolloutDesk {
  report(): object | undefined;
  /** What would change with this file in place of that of --config. */
  compare(file: RolloutFile): Promise<object>;
  /** The trial begins with `begin`, so that whoever asked can be answered before the agent starts again. */
  tryOut(file: RolloutFile & { readonly forMs: number }): Promise<{ readonly answer: object; begin(): Promise<void> }>;
  keep(): Promise<void>;
  back(): Promise<void>;
}

export interface RolloutFile {
  readonly path: string;
  readonly text: string;
}

/** The verbosity of the log, which may change at run time. */
export interface LogVerbosity {
  verbosity: number;
}

/** What the runtime has of a pod. */
export interface RuntimeViews {
  /** As it was last seen. */
  latest(uid: PodUid): ObservedPod | undefined;
  look(uid: PodUid, signal: AbortSignal): Promise<ObservedPod>;
}

/**
 * What the agent would do, by the name of the command that asks: the real planner without effects. Rejects with an error
 * whose `name` is `DryRunQuestionError` when the question makes no sense.
 */
export type DryRuns = ReadonlyMap<string, DryRun>;
export type DryRun = (question: URLSearchParams, signal: AbortSignal) => Promise<unknown>;

/**
 * What would happen with a pod manifest if it were put among those of this node under that name. Rejects only when the
 * runtime or the agent is not ready: whatever is wrong with the manifest is in the answer.
 */
export type PlanManifest = (manifest: NamedManifest, signal: AbortSignal) => Promise<unknown>;

export interface NamedManifest {
  /** Of a file, without directories. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The pages for people, made by who shows them; nothing of them is there before somebody looks. */
export interface DashboardPages {
  /** Answers a request that the gate has let in. */
  answer(call: DashboardRequest): Promise<void>;
  /** Opens a port for people of this machine; one that can't be had is said in the log. */
  listen(where: HostPort, scope: TaskScope): Promise<void>;
}

export interface DashboardRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What follows `/dashboard/`. */
  readonly path: string;
  readonly query: URLSearchParams;
}
