/**
 * The life of a pod on this node.
 *
 *   running -> terminating -> terminated -> finished        no way back: a uid that returns gets a new worker
 *
 * running      its containers are wanted
 * terminating  its containers are being stopped
 * terminated   no container runs any more; volumes and cgroup are being released
 * finished     nothing is left to do but to remember that it was here
 */
export type PodState =
  | { readonly step: "running" }
  | { readonly step: "terminating"; readonly cause: TerminationCause; readonly graceSeconds: number }
  | { readonly step: "terminated"; readonly cause: TerminationCause }
  | { readonly step: "finished"; readonly cause: TerminationCause };

/**
 * completed  its containers ran to their end, or it was rejected
 * evicted    the node took it off (pressure, preemption, shutdown, deadline)
 * orphaned   the runtime has it, no source knows it
 * deleted    it is no longer wanted: removed from its source, or deleted through the API
 */
export type TerminationCause = "completed" | "evicted" | "orphaned" | "deleted";

export type PodStateEvent =
  | { readonly type: "terminate"; readonly cause: TerminationCause; readonly graceSeconds: number }
  | { readonly type: "containersGone" }
  | { readonly type: "released" };

export function nextState(state: PodState, event: PodStateEvent): PodState {
  switch (state.step) {
    case "running":
      if (event.type !== "terminate") return state;
      return { step: "terminating", cause: event.cause, graceSeconds: atLeastOneSecond(event.graceSeconds) };
    case "terminating":
      if (event.type === "containersGone") return { step: "terminated", cause: state.cause };
      if (event.type !== "terminate") return state;
      // A later request may shorten the wait, never lengthen it.
      return {
        step: "terminating",
        cause: strongerCause(state.cause, event.cause),
        graceSeconds: Math.min(state.graceSeconds, atLeastOneSecond(event.graceSeconds)),
      };
    case "terminated":
      if (event.type === "released") return { step: "finished", cause: state.cause };
      return event.type === "terminate" ? { ...state, cause: strongerCause(state.cause, event.cause) } : state;
    case "finished":
      return event.type === "terminate" ? { ...state, cause: strongerCause(state.cause, event.cause) } : state;
  }
}

const causeStrength: Readonly<Record<TerminationCause, number>> = { completed: 0, evicted: 1, orphaned: 2, deleted: 3 };

function strongerCause(present: TerminationCause, requested: TerminationCause): TerminationCause {
  return causeStrength[requested] > causeStrength[present] ? requested : present;
}

function atLeastOneSecond(graceSeconds: number): number {
  return Math.max(1, graceSeconds);
}
