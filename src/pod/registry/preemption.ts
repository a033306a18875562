import { type Clock, type Logger, mapAtMost, type TaskScope, withDeadline } from "../../ground/base/index.ts";
import {
  type IdentifiedPod,
  ownGraceSeconds,
  type PodStatus,
  type RecordPodEvent,
  uidOf,
  withDisruption,
} from "../../ground/model/index.ts";
import type { PodWorkers } from "../workers/index.ts";
import type { RegistryPorts } from "./registry.ts";

const shortestWaitMs = 10_000;
const message = "Preempted in order to admit critical pod";

/** Takes pods off the node, each with its own grace, to make room for a critical one. */
export function preempter(parts: {
  readonly workers: PodWorkers;
  readonly recordEvent: RecordPodEvent;
  readonly clock: Clock;
  readonly log: Logger;
  readonly scope: TaskScope;
  /** For metrics: one pod has to go for want of this resource. */
  readonly onPreempted: (resource: string) => void;
}): RegistryPorts["preempt"] {
  const { recordEvent, clock, log, scope } = parts;
  const takeOff = async (pod: IdentifiedPod, signal: AbortSignal): Promise<void> => {
    const { name, namespace } = pod.metadata;
    log.info("Preempting a pod to make room for a critical one", { pod: name, namespace });
    recordEvent(pod, { type: "Warning", reason: "Preempting", message });
    const graceSeconds = ownGraceSeconds(pod);
    const amendStatus = (status: PodStatus): PodStatus => asPreempted(status, clock.now());
    const waitMs = Math.max(shortestWaitMs, graceSeconds * 1_500);
    try {
      const request = { cause: "evicted", graceSeconds, amendStatus } as const;
      await withDeadline(
        clock,
        waitMs,
        () => "late",
        signal,
        (bounded) => parts.workers.terminateAndWait(uidOf(pod), request, bounded),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      const late = "Container runtime did not kill the pod within specified grace period.";
      recordEvent(pod, { type: "Warning", reason: "ExceededGracePeriod", message: late });
    }
  };
  return ({ victims, resource }, then) => {
    for (const _ of victims) parts.onPreempted(resource);
    scope.spawn("make room", async (signal) => {
      // All at once: each takes its own grace, and together they make room for one pod.
      await mapAtMost(victims.length, victims, (pod) => takeOff(pod, signal));
      then();
    });
  };
}

function asPreempted(status: PodStatus, now: number): PodStatus {
  const disrupted = withDisruption(status, "Pod was preempted by Kubelet to accommodate a critical pod.", now);
  return { ...disrupted, phase: "Failed", reason: "Preempting", message };
}
