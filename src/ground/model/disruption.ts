import { apiTime } from "./api-time.ts";
import type { PodCondition, PodStatus } from "./kube/gen/types.ts";

const type = "DisruptionTarget";
const byTheNode = "TerminationByKubelet";

/** Says in a pod's conditions that the node itself ends it, and why. Controllers tell by it that the pod is not at fault. */
function withDisruption(status: PodStatus, message: string, now: number): PodStatus {
  const before = status.conditions?.find((condition) => condition.type === type);
  const target: PodCondition = {
    type,
    status: "True",
    reason: byTheNode,
    message,
    lastTransitionTime: before?.lastTransitionTime ?? apiTime(now),
  };
  const others = (status.conditions ?? []).filter((condition) => condition.type !== type);
  return { ...status, conditions: [target, ...others] };
}

/** Why the node itself ends a pod while it goes on. */
export interface NodeDecision {
  readonly reason: "Evicted" | "Preempting";
  readonly message: string;
  /** What controllers that count disruptions are told; undefined: this one is the pod's own fault. */
  readonly disruption: string | undefined;
}

/** The status of a pod that the node takes off. */
export function takenOffStatus(status: PodStatus, decision: NodeDecision, now: number): PodStatus {
  const { reason, message, disruption } = decision;
  const ended: PodStatus = { ...status, phase: "Failed", reason, message };
  return disruption === undefined ? ended : withDisruption(ended, disruption, now);
}

const shutdownReason = "Terminated";
const shutdownMessage = "Pod was terminated in response to imminent node shutdown.";

/** The status of a pod that ends because its node does. One that has done its work by then has not failed. */
export function endedByShutdown(status: PodStatus, now: number): PodStatus {
  const phase = status.phase === "Succeeded" ? "Succeeded" : "Failed";
  return { ...withDisruption(status, shutdownMessage, now), phase, reason: shutdownReason, message: shutdownMessage };
}

/**
 * The status that a static pod goes on from after its node was off: its source wants it as before, so nothing of that
 * end is left but how its containers ended. Undefined: the pod ended for another reason, or did not.
 */
export function beforeShutdown(status: PodStatus): PodStatus | undefined {
  // By the condition: one that ended well says nothing else of it.
  const isShutdown = status.conditions?.some(
    (condition) => condition.type === type && condition.reason === byTheNode && condition.message === shutdownMessage,
  );
  if (!isShutdown) return undefined;
  const { reason: _reason, message: _message, ...rest } = status;
  const conditions = (status.conditions ?? []).filter((condition) => condition.reason !== byTheNode);
  return { ...rest, conditions, phase: "Running" };
}
