import { graceSecondsOf, type IdentifiedPod, type PodStatus } from "../../ground/model/index.ts";
import { move, type PodWorker, type SyncOutcome } from "./pod-worker.ts";
import type { WorkerPorts } from "./ports.ts";

/** When a pod with activeDeadlineSeconds has had its time. */
export function activeDeadline(pod: IdentifiedPod, status: PodStatus | undefined): number | undefined {
  const { activeDeadlineSeconds } = pod.spec;
  const startTime = status?.startTime ?? pod.status?.startTime;
  if (activeDeadlineSeconds === undefined || startTime === undefined) return undefined;
  // The time is cut to whole seconds, and no pod may be ended early.
  return Date.parse(startTime) + (activeDeadlineSeconds + 1) * 1000;
}

/** Fails the pod, whose containers then get their grace. */
export function endByDeadline(worker: PodWorker, pod: IdentifiedPod, ports: WorkerPorts): SyncOutcome {
  const message = "Pod was active on the node longer than the specified deadline";
  ports.recordEvent(pod, { type: "Normal", reason: "DeadlineExceeded", message });
  move(worker, {
    type: "ended",
    now: ports.clock.monotonic(),
    isPastDeadline: true,
    cause: "evicted",
    graceSeconds: graceSecondsOf(pod),
    amendStatus: (status) => ({ ...status, phase: "Failed", reason: "DeadlineExceeded", message }),
  });
  return { type: "again" };
}
