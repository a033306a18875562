import {
  type Container,
  type ContainerStatus,
  type IdentifiedPod,
  type PodStatus,
  restartAllTrigger,
  usesRestartAll,
} from "../../ground/model/index.ts";
import type { StatusInput } from "./input.ts";

/** A container's end may restart all of its pod: what users are told while that lasts. */
export const restartingAllType = "AllContainersRestarting";
const waitingReason = "RestartingAllContainers";
const waitingMessage = "The container is removed because RestartAllContainers in place";
const killedExitCode = 137;

/**
 * Whether containers that have no record have none because all of the pod start anew: as long as the one that asked
 * for it has a record, and for the one look that finds none left.
 */
export function isRestartingAll({ pod, observed, previous }: StatusInput): boolean {
  if (!usesRestartAll(pod)) return false;
  const wasUnderWay = previous?.conditions?.some(({ type, status }) => type === restartingAllType && status === "True");
  return restartAllTrigger(pod, observed) !== undefined || wasUnderWay === true;
}

export function isWaitingForAll({ state }: ContainerStatus): boolean {
  return state?.waiting?.reason === waitingReason;
}

/** One that ended by itself keeps how; one that was killed for the others' sake is told so. Counted once. */
export function restartingStatus(container: Container, previous: ContainerStatus): ContainerStatus {
  if (isWaitingForAll(previous)) return previous;
  const ended = previous.state?.terminated;
  const killed = { exitCode: killedExitCode, reason: waitingReason, message: waitingMessage };
  const hasRun = previous.containerID !== undefined;
  return {
    name: container.name,
    state: { waiting: { reason: waitingReason, message: waitingMessage } },
    lastState: hasRun ? { terminated: ended ?? killed } : (previous.lastState ?? {}),
    ready: false,
    started: false,
    restartCount: previous.restartCount + (hasRun ? 1 : 0),
    image: container.image ?? "",
    imageID: "",
  };
}

/** The condition, for pods that may need it: undefined for all others. */
export function restartingAllVerdict(
  input: StatusInput,
): { readonly status: "True" | "False"; readonly reason?: string; readonly message?: string } | undefined {
  if (!usesRestartAll(input.pod)) return undefined;
  if (restartAllTrigger(input.pod, input.observed) === undefined) return { status: "False" };
  return {
    status: "True",
    reason: "RestartAllContainersStarted",
    message: "container exited with restart policy rule",
  };
}

/** A pod that starts anew in place stays what it was: initialised, and running. */
export function staysInitialised(pod: IdentifiedPod, previous: PodStatus | undefined): boolean {
  const before = previous?.conditions?.find(({ type }) => type === "Initialized");
  return usesRestartAll(pod) && before?.status === "True";
}
