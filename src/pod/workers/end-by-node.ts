import { type Clock, withDeadline } from "../../ground/base/index.ts";
import { type IdentifiedPod, type RecordPodEvent, uidOf } from "../../ground/model/index.ts";
import type { TerminateRequest } from "./pod-state.ts";
import type { PodWorkers } from "./pod-workers.ts";

const shortestWaitMs = 10_000;

/** Ends a pod because the node wants it gone, and says so where that takes longer than it should. */
export async function endByNode(
  pod: IdentifiedPod,
  request: Omit<TerminateRequest, "cause">,
  {
    workers,
    recordEvent,
    clock,
  }: {
    readonly workers: Pick<PodWorkers, "terminateAndWait">;
    readonly recordEvent: RecordPodEvent;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): Promise<void> {
  const waitMs = Math.max(shortestWaitMs, request.graceSeconds * 1_500);
  try {
    await withDeadline(
      clock,
      waitMs,
      () => "late",
      signal,
      (bounded) => workers.terminateAndWait(uidOf(pod), { cause: "evicted", ...request }, bounded),
    );
  } catch (error) {
    if (signal.aborted) throw error;
    const late = "Container runtime did not kill the pod within specified grace period.";
    recordEvent(pod, { type: "Warning", reason: "ExceededGracePeriod", message: late });
  }
}
