import { cutText } from "../../ground/base/index.ts";
import {
  apiTime,
  type Container,
  type ContainerKind,
  type ContainerState,
  type ContainerStatus,
  containersOf,
  named,
  type ObservedContainer,
  type PodContainer,
  restarts,
} from "../../ground/model/index.ts";
import type { StatusInput } from "./input.ts";
import { shownResources } from "./resize-status.ts";
import { isRestartingAll, isWaitingForAll, restartingStatus } from "./restarting-all.ts";

const lostExitCode = 137;
/** All termination messages of a pod together stay below this, or the status would not fit into the API. */
const messageBytesPerPod = 12_288;
/** The same for all that containers wait for. */
const waitingBytesPerPod = 64 * 1024;

export interface ContainerStatuses {
  readonly init: readonly ContainerStatus[];
  readonly regular: readonly ContainerStatus[];
  readonly ephemeral: readonly ContainerStatus[];
}

export function containerStatuses(input: StatusInput): ContainerStatuses {
  const all = containersOf(input.pod);
  const messageLimit = Math.floor(messageBytesPerPod / Math.max(all.length, 1));
  const allRestart = isRestartingAll(input);
  const records = recordsByName(input.observed.containers);
  const of = (...kinds: ContainerKind[]): ContainerStatus[] =>
    all
      .filter(({ kind }) => kinds.includes(kind))
      .map((entry) => statusOf(input, entry, records.get(entry.container.name) ?? [], { messageLimit, allRestart }));
  return {
    init: of("init", "sidecar"),
    regular: of("regular").sort(byName),
    ephemeral: of("ephemeral").sort(byName),
  };
}

function byName(a: ContainerStatus, b: ContainerStatus): number {
  return a.name < b.name ? -1 : 1;
}

/** What is the same for all containers of a pod. */
interface OfPod {
  readonly messageLimit: number;
  readonly allRestart: boolean;
}

/** Both the spec and the runtime may have tens of thousands: one is not looked through for each of the other. */
function recordsByName(containers: readonly ObservedContainer[]): ReadonlyMap<string, readonly ObservedContainer[]> {
  const records = new Map<string, ObservedContainer[]>();
  for (const container of containers) {
    const ofName = records.get(container.name);
    if (ofName === undefined) records.set(container.name, [container]);
    else ofName.push(container);
  }
  return records;
}

function statusOf(
  input: StatusInput,
  { kind, container }: PodContainer,
  records: readonly ObservedContainer[],
  ofPod: OfPod,
): ContainerStatus {
  const previous = previousStatus(input, kind, container.name);
  const [newest, ...others] = isLeftBehind(records[0], previous) ? [] : records;
  // Only what ran has an end: an instance whose start failed says nothing of the one before it.
  const older = others.find(({ state }) => state === "exited");
  const base =
    newest === undefined
      ? withoutRecord(input, container, previous, ofPod)
      : fromRecords(input, kind, container, newest, older, previous, ofPod.messageLimit);
  return waitingForRetry(input, { kind, container }, newest, base);
}

/** The record of the last instance is gone, and an older one still there: removing them was cut short. */
function isLeftBehind(newest: ObservedContainer | undefined, previous: ContainerStatus | undefined): boolean {
  if (newest?.state !== "exited" || previous?.state?.terminated === undefined) return false;
  return newest.annotations.restartCount < previous.restartCount;
}

function previousStatus(input: StatusInput, kind: ContainerKind, name: string): ContainerStatus | undefined {
  const { initContainerStatuses, containerStatuses: regular, ephemeralContainerStatuses } = input.previous ?? {};
  const list = kind === "regular" ? regular : kind === "ephemeral" ? ephemeralContainerStatuses : initContainerStatuses;
  return named(list ?? [], name);
}

function withoutRecord(
  input: StatusInput,
  container: Container,
  previous: ContainerStatus | undefined,
  { allRestart }: OfPod,
): ContainerStatus {
  if (previous !== undefined && (allRestart || isWaitingForAll(previous))) return restartingStatus(container, previous);
  if (previous?.state?.terminated !== undefined) return previous;
  const reason = (input.pod.spec.initContainers ?? []).length > 0 ? "PodInitializing" : "ContainerCreating";
  const status: ContainerStatus = {
    name: container.name,
    state: { waiting: { reason } },
    lastState: previous?.lastState ?? {},
    ready: false,
    started: false,
    restartCount: previous?.restartCount ?? 0,
    image: container.image ?? "",
    imageID: "",
    ...mountsOf(container),
  };
  if (previous?.state?.running === undefined || previous.lastState?.terminated !== undefined) return status;
  // It ran when we last looked and the runtime has forgotten it: nobody knows how it ended.
  const deleting = input.pod.metadata.deletionTimestamp !== undefined;
  const message = "The container could not be located when the pod was deleted.  The container used to be Running";
  return {
    ...status,
    lastState: { terminated: { exitCode: lostExitCode, reason: "ContainerStatusUnknown", message } },
    restartCount: status.restartCount + (deleting ? 0 : 1),
  };
}

function fromRecords(
  input: StatusInput,
  kind: ContainerKind,
  container: Container,
  newest: ObservedContainer,
  older: ObservedContainer | undefined,
  previous: ContainerStatus | undefined,
  messageLimit: number,
): ContainerStatus {
  const lost = newest.state === "unknown" && previous?.state?.running !== undefined;
  const state = lost ? lostState(input, newest) : stateOf(input, newest, messageLimit);
  const isRunning = newest.state === "running";
  const counted = newest.annotations.restartCount + (lost ? 1 : 0);
  const started = isRunning && input.flags.started(newest);
  const { resources } = container;
  const devices = kind === "regular" ? input.deviceHealth(container.name) : [];
  return {
    name: container.name,
    state,
    lastState:
      older === undefined ? lastStateWithoutRecord(input, newest, previous) : stateOf(input, older, messageLimit),
    ready: readiness(input, kind, newest, started),
    ...(kind === "ephemeral" ? {} : { started: kind === "init" ? isRunning : started }),
    // An instance that was told of and never ran (an agent's end cut its start off) is removed: its number is the next's.
    restartCount: isRunning ? counted : Math.max(counted, previous?.restartCount ?? 0),
    image: newest.image,
    imageID: newest.imageRef,
    containerID: idOf(input, newest),
    ...(resources?.requests === undefined ? {} : { allocatedResources: resources.requests }),
    resources: shownResources(input, container, newest),
    ...(devices.length === 0 ? {} : { allocatedResourcesStatus: devices }),
    ...mountsOf(container),
    ...(newest.user === undefined ? {} : { user: { linux: newest.user } }),
  };
}

/** The record of the instance before is gone: its end is known from what was told of it, if that was its end. */
function lastStateWithoutRecord(
  input: StatusInput,
  newest: ObservedContainer,
  previous: ContainerStatus | undefined,
): ContainerState {
  const ended = previous?.state?.terminated;
  if (ended?.containerID !== undefined && ended.containerID !== idOf(input, newest)) return { terminated: ended };
  return previous?.lastState ?? {};
}

function mountsOf({ volumeMounts = [] }: Container): Pick<ContainerStatus, "volumeMounts"> {
  if (volumeMounts.length === 0) return {};
  return {
    volumeMounts: volumeMounts.map(({ name, mountPath, readOnly, recursiveReadOnly }) => ({
      name,
      mountPath,
      ...(readOnly === true
        ? { readOnly, recursiveReadOnly: recursiveReadOnly === "Enabled" ? "Enabled" : "Disabled" }
        : {}),
    })),
  };
}

function readiness(input: StatusInput, kind: ContainerKind, newest: ObservedContainer, started: boolean): boolean {
  switch (kind) {
    case "init":
      return newest.state === "exited" && newest.exitCode === 0;
    case "ephemeral":
      return false;
    case "sidecar":
    case "regular":
      return started && input.flags.ready(newest);
  }
}

function stateOf(input: StatusInput, record: ObservedContainer, messageLimit: number): ContainerState {
  switch (record.state) {
    case "running":
      return { running: { startedAt: apiTime(record.startedAt) } };
    case "created":
    case "unknown":
      return { waiting: {} };
    case "exited": {
      const message = [record.message, input.terminationText(record)].filter((part) => part !== "").join(": ");
      return {
        terminated: {
          exitCode: record.exitCode,
          reason: record.reason,
          ...(message === "" ? {} : { message: cutText(message, messageLimit) }),
          startedAt: apiTime(record.startedAt),
          finishedAt: apiTime(record.finishedAt),
          containerID: idOf(input, record),
        },
      };
    }
  }
}

function lostState(input: StatusInput, record: ObservedContainer): ContainerState {
  return {
    terminated: {
      exitCode: lostExitCode,
      reason: "ContainerStatusUnknown",
      message: "The container could not be located when the pod was terminated",
      containerID: idOf(input, record),
    },
  };
}

/** A container that is to start again, but could not yet, is shown waiting with the reason; its end moves back. */
function waitingForRetry(
  input: StatusInput,
  { kind, container }: PodContainer,
  newest: ObservedContainer | undefined,
  status: ContainerStatus,
): ContainerStatus {
  if (input.tornDown || input.pod.metadata.deletionTimestamp !== undefined || newest?.state === "running")
    return status;
  if (kind === "init" && newest?.state === "exited" && newest.exitCode === 0) return status;
  const isReplaced = newest !== undefined && input.isReplaced?.(newest) === true;
  if (newest !== undefined && !isReplaced && !restarts(input.pod, { kind, container }, newest)) return status;
  const reason = input.waitingReason(status.name);
  if (reason === undefined) return status;
  return {
    ...status,
    state: { waiting: { reason: reason.reason, message: cutText(reason.message, waitingLimit(input)) } },
    lastState: status.state?.terminated === undefined ? status.lastState : { terminated: status.state.terminated },
  };
}

function waitingLimit({ pod }: StatusInput): number {
  return Math.floor(waitingBytesPerPod / Math.max(containersOf(pod).length, 1));
}

function idOf(input: StatusInput, record: ObservedContainer): string {
  return `${input.node.runtimeName}://${record.id}`;
}
