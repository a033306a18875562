import type { Timer } from "../../ground/base/index.ts";
import type { IdentifiedPod, NodeDecision, PodStatus } from "../../ground/model/index.ts";

/**
 * The life of a pod on this node. Each state holds what only it knows.
 *
 *   running -> terminating -> terminated -> finished        no way back: a uid that returns gets a new worker
 *
 * running      its containers are wanted
 * terminating  its containers are being stopped
 * terminated   no container runs any more; volumes and cgroup are being released
 * finished     nothing is left to do but to remember that it was here
 */
export type PodState = Running | EndingState;
export type EndingState = Terminating | Terminated | Finished;

export interface Running {
  readonly step: "running";
  /** Directories, cgroup and volumes were set up by this run of the agent. */
  readonly isPrepared: boolean;
  /** What was there, and in which state, when all of it was last stopped without anything to be started after. */
  readonly stoppedRemains: string | undefined;
  /** Fires when the pod has been active for as long as it may. */
  readonly deadlineTimer: Timer | undefined;
}

export interface Terminating extends Unwanted, Amended {
  readonly step: "terminating";
  /** At least 1, or 0: what runs is killed at once. */
  readonly graceSeconds: number;
  /** When, by the clock that is never set, the grace ends; fixed when stopping begins, only ever moved forward in time. */
  readonly killDeadline: number | undefined;
  /** Called when none of its containers runs any more. */
  readonly whenStopped: readonly (() => void)[];
}

export interface Terminated extends Unwanted, Amended {
  readonly step: "terminated";
}

export interface Finished extends Unwanted {
  readonly step: "finished";
  /** Containers, sandboxes, logs and directories have been removed. */
  readonly isCleared: boolean;
}

interface Unwanted {
  readonly cause: TerminationCause;
  /** Came back under the same uid meanwhile; starts again when this end is over. */
  readonly returning: IdentifiedPod | undefined;
}

/** How the status says why the node itself ends the pod (eviction, deadline), for as long as statuses are made. */
interface Amended {
  readonly amendStatus: AmendStatus | undefined;
  /** What the node decided, if that has to outlive the agent: the pod goes on being taken off. */
  readonly decision?: NodeDecision;
  /** The pod was active on the node for longer than it may be. */
  readonly isPastDeadline: boolean;
}

export type AmendStatus = (status: PodStatus) => PodStatus;

/**
 * completed  its containers ran to their end, or it was rejected
 * evicted    the node took it off (pressure, preemption, shutdown, deadline)
 * orphaned   the runtime has it, no source knows it
 * deleted    it is no longer wanted: removed from its source, or deleted through the API
 */
export type TerminationCause = "completed" | "evicted" | "orphaned" | "deleted";

export type PodStateEvent =
  | { readonly type: "prepared" }
  | { readonly type: "remainsStopped"; readonly remains: string | undefined }
  | { readonly type: "deadlineSet"; readonly timer: Timer }
  /** Somebody wants it to end. `now` is monotonic. */
  | ({ readonly type: "terminate"; readonly now: number } & TerminateRequest)
  /** It has come to its end by itself, or to the end of its time. */
  | ({ readonly type: "ended"; readonly now: number; readonly isPastDeadline: boolean } & TerminateRequest)
  /** Its containers are being stopped from now on. */
  | { readonly type: "stopping"; readonly now: number }
  /** Somebody waits for its containers to have stopped. */
  | { readonly type: "awaited"; readonly whenStopped: () => void }
  | { readonly type: "containersGone" }
  | { readonly type: "released" }
  | { readonly type: "cleared" }
  | { readonly type: "returned"; readonly pod: IdentifiedPod };

export interface TerminateRequest {
  readonly cause: TerminationCause;
  readonly graceSeconds: number;
  /** The node can't wait: nobody is asked to end, everything is killed. */
  readonly atOnce?: boolean | undefined;
  readonly amendStatus?: AmendStatus | undefined;
  readonly decision?: NodeDecision;
}

export const newlyRunning: Running = {
  step: "running",
  isPrepared: false,
  stoppedRemains: undefined,
  deadlineTimer: undefined,
};

/** An agent before this one had begun to take it off. */
export function stillTakenOff(decision: NodeDecision, amendStatus: AmendStatus): Terminating {
  return terminating({ cause: "evicted", graceSeconds: 0, amendStatus, decision });
}

export function newlyOrphaned(graceSeconds: number): Terminating {
  return terminating({ cause: "orphaned", graceSeconds });
}

/** The only way from one state to another. What an event means nothing to stays as it is. */
export function nextState(state: EndingState, event: PodStateEvent): EndingState;
export function nextState(state: PodState, event: PodStateEvent): PodState;
export function nextState(state: PodState, event: PodStateEvent): PodState {
  switch (state.step) {
    case "running":
      return afterRunning(state, event);
    case "terminating":
      return afterTerminating(state, event);
    case "terminated":
      return afterTerminated(state, event);
    case "finished":
      return afterFinished(state, event);
  }
}

function afterRunning(state: Running, event: PodStateEvent): PodState {
  switch (event.type) {
    case "prepared":
      return { ...state, isPrepared: true };
    case "remainsStopped":
      return { ...state, stoppedRemains: event.remains };
    case "deadlineSet":
      return { ...state, deadlineTimer: event.timer };
    case "terminate":
      return terminating({ ...event, graceSeconds: graceOf(event) });
    case "ended":
      return {
        ...terminating({ ...event, graceSeconds: graceOf(event) }),
        isPastDeadline: event.isPastDeadline,
      };
    default:
      return state;
  }
}

function afterTerminating(state: Terminating, event: PodStateEvent): EndingState {
  switch (event.type) {
    case "terminate":
      return { ...sooner(state, event), returning: undefined };
    case "ended":
      return { ...sooner(state, event), isPastDeadline: state.isPastDeadline || event.isPastDeadline };
    case "stopping":
      return { ...state, killDeadline: killDeadlineOf(state, event.now) };
    case "awaited":
      return { ...state, whenStopped: [...state.whenStopped, event.whenStopped] };
    case "containersGone": {
      const { cause, returning, amendStatus, decision, isPastDeadline } = state;
      return { step: "terminated", cause, returning, amendStatus, ...(decision && { decision }), isPastDeadline };
    }
    case "returned":
      return { ...state, returning: event.pod };
    default:
      return state;
  }
}

/** When what still runs is killed, if it begins to be stopped now. */
export function killDeadlineOf({ killDeadline, graceSeconds }: Terminating, now: number): number {
  const until = now + graceSeconds * 1000;
  return Math.min(killDeadline ?? until, until);
}

function afterTerminated(state: Terminated, event: PodStateEvent): EndingState {
  switch (event.type) {
    case "terminate":
      return { ...state, ...stronger(state, event), amendStatus: event.amendStatus ?? state.amendStatus };
    case "released":
      return { step: "finished", cause: state.cause, returning: state.returning, isCleared: false };
    case "returned":
      return { ...state, returning: event.pod };
    default:
      return state;
  }
}

function afterFinished(state: Finished, event: PodStateEvent): EndingState {
  switch (event.type) {
    case "terminate":
      return { ...state, ...stronger(state, event) };
    case "cleared":
      return { ...state, isCleared: true };
    case "returned":
      return { ...state, returning: event.pod };
    default:
      return state;
  }
}

function terminating({ cause, graceSeconds, amendStatus, decision }: TerminateRequest): Terminating {
  return {
    step: "terminating",
    cause,
    graceSeconds,
    returning: undefined,
    amendStatus,
    ...(decision && { decision }),
    isPastDeadline: false,
    killDeadline: undefined,
    whenStopped: [],
  };
}

/** A later request may shorten the wait, never lengthen it. */
function sooner(state: Terminating, request: TerminateRequest & { readonly now: number }): Terminating {
  const { killDeadline } = state;
  const until = request.now + (request.atOnce ? 0 : request.graceSeconds * 1000);
  return {
    ...state,
    cause: strongerCause(state.cause, request.cause),
    graceSeconds: Math.min(state.graceSeconds, graceOf(request)),
    amendStatus: request.amendStatus ?? state.amendStatus,
    ...(request.decision && { decision: request.decision }),
    killDeadline: killDeadline === undefined ? undefined : Math.min(killDeadline, until),
  };
}

/** Whoever wants it to end once more does not want it back. */
function stronger(state: Unwanted, { cause }: TerminateRequest): Unwanted {
  return { cause: strongerCause(state.cause, cause), returning: undefined };
}

const causeStrength: Readonly<Record<TerminationCause, number>> = { completed: 0, evicted: 1, orphaned: 2, deleted: 3 };

function strongerCause(present: TerminationCause, requested: TerminationCause): TerminationCause {
  return causeStrength[requested] > causeStrength[present] ? requested : present;
}

function graceOf({ graceSeconds, atOnce }: TerminateRequest): number {
  return atOnce ? 0 : Math.max(1, graceSeconds);
}
