import type { LinkedSignal, Timer } from "../../ground/base/index.ts";
import {
  beforeShutdown,
  type IdentifiedPod,
  isStaticPod,
  isTerminalPhase,
  type NodeDecision,
  type PodStatus,
  type PodUid,
  type RetryReason,
  takenOffStatus,
} from "../../ground/model/index.ts";
import type { WaitingReason } from "../status/index.ts";
import { CrashBackoff } from "./crash-backoff.ts";
import {
  type EndingState,
  newlyOrphaned,
  newlyRunning,
  nextState,
  type PodState,
  type PodStateEvent,
  stillTakenOff,
} from "./pod-state.ts";
import type { PodCheckpoint, WorkerPorts } from "./ports.ts";
import { SandboxPace } from "./sandbox-pace.ts";

/** Everything one worker knows of its pod besides what can be read from outside. */
export type Worker = PodWorker | OrphanWorker;

/** Works for a pod that a source wants, or wanted. */
export interface PodWorker extends WorkerRecords {
  readonly type: "pod";
  /** As it is run, with the resources that it was promised. */
  pod: IdentifiedPod;
  /** Its containers and its cgroup are being given what they were promised at this moment. */
  isResizing: boolean;
  /** Why the last attempt to give running containers what they were promised did not succeed. */
  resizeError: { readonly message: string; readonly generation: number | undefined } | undefined;
  /** Containers that were killed so that others take their place, by name: the ids, until those run. */
  readonly replaced: Map<string, string>;
  /** Changed by `move` alone. */
  state: PodState;
}

/** Stops a pod that only the runtime knows. */
export interface OrphanWorker extends WorkerRecords {
  readonly type: "orphan";
  /** As `fullName` gives it. */
  readonly fullName: string;
  /** Changed by `move` alone. */
  state: EndingState;
}

/** What outlives the steps of a pod's life, and the turns of its worker. */
interface WorkerRecords {
  readonly uid: PodUid;
  /** Whether what the runtime has may differ from what was last seen. */
  stale: boolean;
  readonly preStopDone: Set<string>;
  /** Why containers could not be started at the last try, by name, and until when (by the clock that is never set) that stands. */
  readonly waiting: Map<string, WaitingReason & { readonly until: number }>;
  /** How often in a row containers could not be started for a reason that sets no time for the next try. */
  readonly startFailures: Map<string, number>;
  readonly crashBackoff: CrashBackoff;
  readonly sandboxPace: SandboxPace;
  failures: number;
  /** How many syncs have followed one another without a pause. */
  roundsInARow: number;
  /** When the worker was made, on the clock's monotonic scale. */
  readonly madeAt: number;
  /** The version of the pod that was last synced; undefined: none yet. */
  synced: IdentifiedPod | "unknown" | undefined;
  timer: Timer | undefined;
  /** Cancels the sync in progress when it has become pointless. */
  interrupt: LinkedSignal | undefined;
}

type BeginningPorts = Pick<WorkerPorts, "clock" | "statuses" | "checkpoints" | "crashBackoff">;

export function newPodWorker(
  uid: PodUid,
  pod: IdentifiedPod,
  ports: BeginningPorts,
  checkpoint: PodCheckpoint = ports.checkpoints.load(uid),
): PodWorker {
  const { status: saved, decision, crashBackoff, replaced } = checkpoint;
  const status = saved === undefined ? undefined : statusToGoOnFrom(pod, saved);
  if (status !== undefined) ports.statuses.restore(uid, status);
  return {
    type: "pod",
    pod,
    isResizing: false,
    resizeError: undefined,
    replaced: new Map(Object.entries(replaced ?? {})),
    state: stateToGoOnFrom(status, decision, ports),
    ...newRecords(uid, new CrashBackoff(ports.crashBackoff, crashBackoff), ports),
  };
}

/** What the node had begun to take off, and has not told the end of, is not started again: it goes. */
function stateToGoOnFrom(
  status: PodStatus | undefined,
  decision: NodeDecision | undefined,
  { clock }: BeginningPorts,
): PodState {
  if (decision === undefined || isTerminalPhase(status?.phase)) return newlyRunning;
  return stillTakenOff(decision, (computed) => takenOffStatus(computed, decision, clock.now()));
}

/**
 * The node that ended a static pod when it was turned off is back, and so is the pod; any other end stands. So does one
 * that the API server was told of and that could not be saved here, as on a full disk: it never runs again.
 */
function statusToGoOnFrom(pod: IdentifiedPod, saved: PodStatus): PodStatus {
  if (isStaticPod(pod)) return beforeShutdown(saved) ?? saved;
  const { status: shown } = pod;
  return shown !== undefined && isTerminalPhase(shown.phase) && !isTerminalPhase(saved.phase) ? shown : saved;
}

export function newOrphanWorker(
  uid: PodUid,
  { fullName, graceSeconds }: { readonly fullName: string; readonly graceSeconds: number },
  ports: BeginningPorts,
): OrphanWorker {
  const { crashBackoff } = ports.checkpoints.load(uid);
  return {
    type: "orphan",
    fullName,
    state: newlyOrphaned(graceSeconds),
    ...newRecords(uid, new CrashBackoff(ports.crashBackoff, crashBackoff), ports),
  };
}

function newRecords(uid: PodUid, crashBackoff: CrashBackoff, ports: BeginningPorts): WorkerRecords {
  return {
    uid,
    stale: true,
    preStopDone: new Set(),
    waiting: new Map(),
    startFailures: new Map(),
    crashBackoff,
    sandboxPace: new SandboxPace(),
    failures: 0,
    roundsInARow: 0,
    madeAt: ports.clock.monotonic(),
    synced: undefined,
    timer: undefined,
    interrupt: undefined,
  };
}

/** Moves the worker on to its next state, and lets go of what the one before held. */
export function move(worker: Worker, event: PodStateEvent): void {
  const before = worker.state;
  if (worker.type === "pod") worker.state = nextState(worker.state, event);
  else worker.state = nextState(worker.state, event);
  if (before.step === "running" && deadlineTimerOf(worker) !== before.deadlineTimer) before.deadlineTimer?.cancel();
  if (before.step === "terminating" && worker.state.step !== "terminating") {
    for (const resolve of before.whenStopped) resolve();
  }
}

/** A timer outlives what it is for: a deadline may be years away. */
export function cancelTimers(worker: Worker): void {
  worker.timer?.cancel();
  deadlineTimerOf(worker)?.cancel();
}

function deadlineTimerOf({ state }: Worker): Timer | undefined {
  return state.step === "running" ? state.deadlineTimer : undefined;
}

/** What a sync asks for next. */
export type SyncOutcome =
  /** Nothing to do until something happens. */
  | { readonly type: "idle" }
  /** Go on at once: the pod has moved to its next step. */
  | { readonly type: "again" }
  | { readonly type: "retry"; readonly at: number; readonly reason: RetryReason; readonly message: string };
