import type { Timer } from "../../ground/base/index.ts";
import type { IdentifiedPod, PodStatus, PodUid } from "../../ground/model/index.ts";
import type { WaitingReason } from "../status/index.ts";
import { type AllocatedResources, allocate, withAllocated } from "./allocated.ts";
import { CrashBackoff } from "./crash-backoff.ts";
import type { PodState } from "./pod-state.ts";
import type { WorkerPorts } from "./ports.ts";
import { SandboxPace } from "./sandbox-pace.ts";

/** Everything one worker knows of its pod besides what can be read from outside. */
export interface Worker {
  readonly uid: PodUid;
  /** As it is run. undefined: only the runtime knows this pod. */
  pod: IdentifiedPod | undefined;
  /** What its containers were promised when it came; `pod` has these resources whatever its source asks for since. */
  allocated: AllocatedResources;
  /** Its source asks for other resources than it was promised. */
  wantsResize: boolean;
  /** The name of a pod that only the runtime knows, as `fullName` gives it. */
  readonly orphanName: string | undefined;
  state: PodState;
  /** Came back under the same uid while still being stopped; starts again when that is over. */
  returning: IdentifiedPod | undefined;
  /** Whether what the runtime has may differ from what was last seen. */
  stale: boolean;
  /** Directories, cgroup and volumes were set up by this run of the agent. */
  prepared: boolean;
  /** Containers, sandboxes, logs and directories have been removed. */
  isCleared: boolean;
  /** When, by the clock that is never set, the grace of the termination ends; fixed when termination begins, only ever moved forward in time. */
  killDeadline: number | undefined;
  /** What was there, and in which state, when all of it was last stopped without anything to be started after. */
  stoppedRemains: string | undefined;
  readonly preStopDone: Set<string>;
  /** Why containers could not be started at the last try, by name, and until when (by the clock that is never set) that stands. */
  readonly waiting: Map<string, WaitingReason & { readonly until: number }>;
  /** How often in a row containers could not be started for a reason that sets no time for the next try. */
  readonly startFailures: Map<string, number>;
  readonly crashBackoff: CrashBackoff;
  readonly sandboxPace: SandboxPace;
  /** Changes the status of a pod that the node itself ends (eviction, deadline). */
  amendStatus: ((status: PodStatus) => PodStatus) | undefined;
  /** The pod was active on the node for longer than it may be. */
  isPastDeadline: boolean;
  failures: number;
  /** How many syncs have followed one another without a pause. */
  roundsInARow: number;
  /** When the worker was made, on the clock's monotonic scale. */
  readonly madeAt: number;
  /** The version of the pod that was last synced; undefined: none yet. */
  synced: IdentifiedPod | "unknown" | undefined;
  timer: Timer | undefined;
  /** Fires when the pod has been active for as long as it may. */
  deadlineTimer: Timer | undefined;
  /** Cancels the sync in progress when it has become pointless. */
  interrupt: AbortController | undefined;
  readonly whenStopped: (() => void)[];
}

export function newWorker(
  uid: PodUid,
  pod: IdentifiedPod | { readonly orphanName: string },
  state: PodState,
  ports: WorkerPorts,
): Worker {
  const memory = ports.memory.load(uid);
  if (memory.status !== undefined && !("orphanName" in pod)) ports.statuses.restore(uid, memory.status);
  return {
    uid,
    ...("orphanName" in pod
      ? { pod: undefined, orphanName: pod.orphanName, allocated: {}, wantsResize: false }
      : { orphanName: undefined, ...promised(pod, memory.allocated) }),
    state,
    returning: undefined,
    stale: true,
    prepared: false,
    isCleared: false,
    killDeadline: undefined,
    stoppedRemains: undefined,
    preStopDone: new Set(),
    waiting: new Map(),
    startFailures: new Map(),
    crashBackoff: new CrashBackoff(ports.crashBackoff, memory.crashBackoff),
    sandboxPace: new SandboxPace(),
    amendStatus: undefined,
    isPastDeadline: false,
    failures: 0,
    roundsInARow: 0,
    madeAt: ports.clock.monotonic(),
    synced: undefined,
    timer: undefined,
    deadlineTimer: undefined,
    interrupt: undefined,
    whenStopped: [],
  };
}

/** The pod as it is run, given what it was promised before. */
export function promised(
  pod: IdentifiedPod,
  before: AllocatedResources | undefined,
): Pick<Worker, "pod" | "allocated" | "wantsResize"> {
  const allocated = allocate(pod, before);
  const asRun = withAllocated(pod, allocated);
  return { pod: asRun, allocated, wantsResize: asRun !== pod };
}

/** What a sync asks for next. */
export type SyncOutcome =
  /** Nothing to do until something happens. */
  | { readonly type: "settled" }
  /** Go on at once: the pod has moved to its next step. */
  | { readonly type: "again" }
  | { readonly type: "retry"; readonly at: number; readonly reason: string; readonly message: string };
