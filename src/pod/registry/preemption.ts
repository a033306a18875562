import { type Clock, type Logger, mapAtMost, type TaskScope } from "../../ground/base/index.ts";
import {
  type IdentifiedPod,
  type NodeDecision,
  ownGraceSeconds,
  type PodStatus,
  type RecordPodEvent,
  takenOffStatus,
} from "../../ground/model/index.ts";
import { endByNode, type PodWorkers } from "../workers/index.ts";
import type { RegistryPorts } from "./registry.ts";

const message = "Preempted in order to admit critical pod";
const decision: NodeDecision = {
  reason: "Preempting",
  message,
  disruption: "Pod was preempted by Kubelet to accommodate a critical pod.",
};

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
    const amendStatus = (status: PodStatus): PodStatus => takenOffStatus(status, decision, clock.now());
    await endByNode(pod, { graceSeconds, amendStatus, decision }, parts, signal);
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
