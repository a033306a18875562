import { cutText } from "../../ground/base/index.ts";
import type { ContainerState, ContainerStatus, PodStatus } from "../../ground/model/index.ts";

/**
 * How much of a status is sent. A pod may have more containers than the API has room for statuses of them, beside the
 * spec that names them: who waits for the pod's phase and conditions must hear of them all the same.
 *
 * whole  everything
 * brief  of each container whether it is ready, how often it was restarted, and the reason of its state
 * bare   nothing of single containers
 */
export type StatusLength = "whole" | "brief" | "bare";

const longestMessageBytes = 1024;
const shorterThan: Readonly<Record<StatusLength, StatusLength | undefined>> = {
  whole: "brief",
  brief: "bare",
  bare: undefined,
};

/** The next one to try when this was too much; undefined: there is none. */
export function nextShorter(length: StatusLength): StatusLength | undefined {
  return shorterThan[length];
}

/** The status in that length; one that is not whole says so. */
export function shortened(status: PodStatus, length: StatusLength): PodStatus {
  if (length === "whole") return status;
  const { initContainerStatuses, containerStatuses, ephemeralContainerStatuses, ...rest } = status;
  const lists = { initContainerStatuses, containerStatuses, ephemeralContainerStatuses };
  const given = Object.entries(lists).flatMap(([field, list]) => (list === undefined ? [] : [[field, list] as const]));
  const count = given.reduce((sum, [, list]) => sum + list.length, 0);
  const notice = `The statuses of ${count} containers are ${length === "brief" ? "shortened" : "left out"}: they are more than the API server takes`;
  return {
    ...rest,
    ...(length === "brief" ? Object.fromEntries(given.map(([field, list]) => [field, list.map(brief)])) : {}),
    ...(status.conditions === undefined
      ? {}
      : {
          conditions: status.conditions.map((condition) =>
            condition.message === undefined
              ? condition
              : { ...condition, message: cutText(condition.message, longestMessageBytes) },
          ),
        }),
    message: status.message === undefined ? notice : `${cutText(status.message, longestMessageBytes)} (${notice})`,
  };
}

function brief({ name, ready, started, restartCount, image, state }: ContainerStatus): ContainerStatus {
  return {
    name,
    ready,
    ...(started === undefined ? {} : { started }),
    restartCount,
    image: cutText(image, longestMessageBytes),
    imageID: "",
    ...(state === undefined ? {} : { state: briefState(state) }),
  };
}

function briefState({ waiting, running, terminated }: ContainerState): ContainerState {
  if (running !== undefined) return { running };
  if (terminated !== undefined) {
    const { exitCode, reason, startedAt, finishedAt } = terminated;
    return {
      terminated: {
        exitCode,
        ...(reason === undefined ? {} : { reason }),
        ...(startedAt === undefined ? {} : { startedAt }),
        ...(finishedAt === undefined ? {} : { finishedAt }),
      },
    };
  }
  return { waiting: waiting?.reason === undefined ? {} : { reason: waiting.reason } };
}
