import type { ContainerStatus, Pod } from "../../../ground/model/index.ts";
import { AnswerError } from "../api/answer-error.ts";

/** Which instance of a container the log is wanted of: its id as the status has it, `containerd://…`. */
export function logInstance(pod: Pod, name: string, previous: boolean): string {
  const podName = pod.metadata?.name ?? "";
  const where = `container ${JSON.stringify(name)} in pod ${JSON.stringify(podName)}`;
  const status = statusOf(pod, name);
  if (status === undefined) throw new AnswerError(400, `${where} is not available`);
  const last = status.lastState?.terminated?.containerID ?? "";
  if (previous) {
    if (last !== "") return last;
    throw new AnswerError(400, `previous terminated ${where} not found`);
  }
  const { running, terminated, waiting } = status.state ?? {};
  if (running !== undefined) return requireId(status.containerID, `${where} is not available`);
  if (terminated !== undefined) {
    const id = terminated.containerID ?? "";
    return requireId(id === "" ? last : id, `${where} is terminated`);
  }
  if (last !== "") return last;
  switch (waiting?.reason) {
    case undefined:
    case "":
      throw new AnswerError(400, `${where} is waiting to start - no logs yet`);
    case "ErrImagePull":
      throw new AnswerError(400, `${where} is waiting to start: image can't be pulled`);
    case "ImagePullBackOff":
      throw new AnswerError(400, `${where} is waiting to start: trying and failing to pull image`);
    default:
      throw new AnswerError(400, `${where} is waiting to start: ${waiting?.reason}`);
  }
}

/** Whether this instance may still write to its log. */
export function mayStillWrite(pod: Pod | undefined, name: string, id: string): boolean {
  const status = pod === undefined ? undefined : statusOf(pod, name);
  return status?.containerID === id && status.state?.running !== undefined;
}

function statusOf({ status }: Pod, name: string): ContainerStatus | undefined {
  const all = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  return all.find((candidate) => candidate.name === name);
}

function requireId(id: string | undefined, otherwise: string): string {
  if (id === undefined || id === "") throw new AnswerError(400, otherwise);
  return id;
}
