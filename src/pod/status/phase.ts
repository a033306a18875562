import {
  type Container,
  type ContainerStateTerminated,
  type ContainerStatus,
  type IdentifiedPod,
  isSidecar,
  isStaticPod,
  named,
  restartsAfter,
} from "../../ground/model/index.ts";
import type { ContainerStatuses } from "./container-status.ts";
import { isWaitingForAll } from "./restarting-all.ts";

export type PodPhase = "Pending" | "Running" | "Succeeded" | "Failed";

export function podPhase(
  pod: IdentifiedPod,
  statuses: ContainerStatuses,
  { tornDown, isReplaced }: { readonly tornDown: boolean; readonly isReplaced: (name: string) => boolean },
): PodPhase {
  const { initContainers = [] } = pod.spec;
  const init = initContainers.map((container) => ({
    sidecar: isSidecar(container),
    ...ofInit(pod, container, named(statuses.init, container.name)),
  }));
  const regular = tally(pod, statuses.regular, isReplaced);
  const sidecarsWait = init.some(({ sidecar, isWaiting }) => sidecar && isWaiting);
  if (init.some(({ progress }) => progress === "failedForGood")) return "Failed";
  const regularExists = regular.running + regular.stopped + regular.waitingAfterCreate > 0;
  if (init.some(({ sidecar, progress }) => !sidecar && progress === "pending")) return "Pending";
  if (init.some(({ sidecar, progress }) => sidecar && progress === "pending") && !regularExists) return "Pending";
  if (regular.waiting > 0 || sidecarsWait) return "Pending";
  if (regular.running > 0 && regular.unknown === 0) return "Running";
  if (regular.running === 0 && regular.stopped > 0 && regular.unknown === 0) {
    const succeeded = regular.succeeded === regular.stopped;
    if (tornDown && !isStaticPod(pod)) return succeeded ? "Succeeded" : "Failed";
    if (regular.restarting > 0) return "Running";
    return succeeded ? "Succeeded" : "Failed";
  }
  return "Pending";
}

function ofInit(pod: IdentifiedPod, container: Container, status: ContainerStatus | undefined): InitState {
  const { running, terminated } = status?.state ?? {};
  const hasRun = running !== undefined || terminated !== undefined || status?.lastState?.terminated !== undefined;
  return { progress: initProgress(pod, container, status), isWaiting: !hasRun };
}

interface InitState {
  readonly progress: InitProgress;
  /** It has never run, as far as anybody knows. */
  readonly isWaiting: boolean;
}

type InitProgress = "pending" | "failed" | "failedForGood" | "done";

function initProgress(pod: IdentifiedPod, container: Container, status: ContainerStatus | undefined): InitProgress {
  const { state, lastState } = status ?? {};
  if (isSidecar(container)) {
    if (state?.running !== undefined) return status?.started === true ? "done" : "pending";
    if (state?.terminated !== undefined || lastState?.terminated !== undefined) return "done";
    return "pending";
  }
  const ended = endOf(status);
  if (ended === undefined) return "pending";
  if (ended.exitCode === 0) return "done";
  return restartsAfter(pod, container, ended.exitCode) ? "failed" : "failedForGood";
}

/** How a container that does not run has ended; undefined where it is to start whatever its end was, or has not ended. */
function endOf(status: ContainerStatus | undefined): ContainerStateTerminated | undefined {
  const { state, lastState } = status ?? {};
  if (state?.terminated !== undefined) return state.terminated;
  if (status === undefined || state?.waiting === undefined || isWaitingForAll(status)) return undefined;
  return lastState?.terminated;
}

interface Tally {
  running: number;
  stopped: number;
  succeeded: number;
  restarting: number;
  waiting: number;
  waitingAfterCreate: number;
  unknown: number;
}

function tally(pod: IdentifiedPod, statuses: readonly ContainerStatus[], isReplaced: (name: string) => boolean): Tally {
  const result: Tally = {
    running: 0,
    stopped: 0,
    succeeded: 0,
    restarting: 0,
    waiting: 0,
    waitingAfterCreate: 0,
    unknown: 0,
  };
  for (const container of pod.spec.containers) {
    const status = named(statuses, container.name);
    const state = status?.state;
    const ended = endOf(status);
    if (state?.running !== undefined) result.running++;
    else if (ended !== undefined) {
      result.stopped++;
      if (ended.exitCode === 0) result.succeeded++;
      if (isReplaced(container.name) || restartsAfter(pod, container, ended.exitCode)) result.restarting++;
    } else if (state?.waiting !== undefined) {
      result.waiting++;
      if (status?.containerID !== undefined) result.waitingAfterCreate++;
    } else result.unknown++;
  }
  return result;
}
