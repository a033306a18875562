import { type ContainerStatus, type IdentifiedPod, isSidecar, isStaticPod, named } from "../../ground/model/index.ts";
import type { ContainerStatuses } from "./container-status.ts";

export type PodPhase = "Pending" | "Running" | "Succeeded" | "Failed";

export function podPhase(pod: IdentifiedPod, statuses: ContainerStatuses, tornDown: boolean): PodPhase {
  const { restartPolicy, initContainers = [] } = pod.spec;
  const init = initContainers.map((container) => ({
    sidecar: isSidecar(container),
    ...ofInit(named(statuses.init, container.name), isSidecar(container)),
  }));
  const regular = tally(pod, statuses.regular);
  const sidecarsWait = init.some(({ sidecar, isWaiting }) => sidecar && isWaiting);
  if (init.some(({ progress }) => progress === "failed") && restartPolicy === "Never") return "Failed";
  const regularExists = regular.running + regular.stopped + regular.waitingAfterCreate > 0;
  if (init.some(({ sidecar, progress }) => !sidecar && progress === "pending")) return "Pending";
  if (init.some(({ sidecar, progress }) => sidecar && progress === "pending") && !regularExists) return "Pending";
  if (regular.waiting > 0 || sidecarsWait) return "Pending";
  if (regular.running > 0 && regular.unknown === 0) return "Running";
  if (regular.running === 0 && regular.stopped > 0 && regular.unknown === 0) {
    const succeeded = regular.succeeded === regular.stopped;
    if (tornDown && !isStaticPod(pod)) return succeeded ? "Succeeded" : "Failed";
    if (restartPolicy === "Always") return "Running";
    if (succeeded) return "Succeeded";
    return restartPolicy === "Never" ? "Failed" : "Running";
  }
  return "Pending";
}

function ofInit(status: ContainerStatus | undefined, sidecar: boolean): InitState {
  const { running, terminated } = status?.state ?? {};
  const hasRun = running !== undefined || terminated !== undefined || status?.lastState?.terminated !== undefined;
  return { progress: initProgress(status, sidecar), isWaiting: !hasRun };
}

interface InitState {
  readonly progress: "pending" | "failed" | "done";
  /** It has never run, as far as anybody knows. */
  readonly isWaiting: boolean;
}

function initProgress(status: ContainerStatus | undefined, sidecar: boolean): "pending" | "failed" | "done" {
  const { state, lastState } = status ?? {};
  if (sidecar) {
    if (state?.running !== undefined) return status?.started === true ? "done" : "pending";
    if (state?.terminated !== undefined || lastState?.terminated !== undefined) return "done";
    return "pending";
  }
  const terminated = state?.terminated ?? (state?.waiting === undefined ? undefined : lastState?.terminated);
  if (terminated === undefined) return "pending";
  return terminated.exitCode === 0 ? "done" : "failed";
}

interface Tally {
  running: number;
  stopped: number;
  succeeded: number;
  waiting: number;
  waitingAfterCreate: number;
  unknown: number;
}

function tally(pod: IdentifiedPod, statuses: readonly ContainerStatus[]): Tally {
  const result: Tally = { running: 0, stopped: 0, succeeded: 0, waiting: 0, waitingAfterCreate: 0, unknown: 0 };
  for (const container of pod.spec.containers) {
    const status = named(statuses, container.name);
    const { state, lastState } = status ?? {};
    const ended = state?.terminated ?? (state?.waiting === undefined ? undefined : lastState?.terminated);
    if (state?.running !== undefined) result.running++;
    else if (ended !== undefined) {
      result.stopped++;
      if (ended.exitCode === 0) result.succeeded++;
    } else if (state?.waiting !== undefined) {
      result.waiting++;
      if (status?.containerID !== undefined) result.waitingAfterCreate++;
    } else result.unknown++;
  }
  return result;
}
