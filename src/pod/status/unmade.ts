import { cutText, messageOf } from "../../ground/base/index.ts";
import type { ContainerStatus, PodStatus } from "../../ground/model/index.ts";

const longestMessageBytes = 1024;
/** As for a container that was lost. */
const lostExitCode = 137;

/**
 * The last status of a pod whose containers have stopped, where none can be made of what it says of itself: such a pod
 * has failed. It must not stay on the node for ever because nobody can say how it ended.
 */
export function unmadeStatus(previous: PodStatus | undefined, error: unknown): PodStatus {
  const message = cutText(`The pod's status could not be made: ${messageOf(error)}`, longestMessageBytes);
  const over = (statuses: readonly ContainerStatus[] | undefined): ContainerStatus[] | undefined =>
    statuses?.map((status) => (status.state?.terminated === undefined ? lost(status, message) : status));
  return {
    ...previous,
    phase: "Failed",
    reason: "StatusUnknown",
    message,
    ...(previous?.initContainerStatuses && { initContainerStatuses: over(previous.initContainerStatuses) }),
    ...(previous?.containerStatuses && { containerStatuses: over(previous.containerStatuses) }),
  } as PodStatus;
}

function lost(status: ContainerStatus, message: string): ContainerStatus {
  const terminated = { exitCode: lostExitCode, reason: "ContainerStatusUnknown", message };
  return { ...status, ready: false, started: false, state: { terminated } };
}
