import { formatDuration } from "../../ground/base/index.ts";
import type { EventReason, PodEvent } from "../../ground/model/index.ts";
import type { PullProgress } from "./pull-progress.ts";

/** The events users see about the image of a container, word for word the kubelet's. */
export const imageEvents = {
  pulling: (image: string): ImageEvent => normal("Pulling", `Pulling image "${image}"`),
  /** Ours: the kubelet says nothing until the image is there. */
  underWay: (image: string, { bytes, totalBytes, layers }: PullProgress): ImageEvent =>
    normal(
      "Pulling",
      `Pulling image "${image}": ${megabytes(bytes)} of ${megabytes(totalBytes)}, ${layers.done} of ${layers.total} layers`,
    ),
  alreadyPresent: (image: string, checked: boolean): ImageEvent =>
    normal(
      "Pulled",
      `Container image "${image}" already present on machine${checked ? " and can be accessed by the pod" : ""}`,
    ),
  pulled: (image: string, pullMs: number, withWaitingMs: number, sizeBytes: bigint): ImageEvent =>
    normal(
      "Pulled",
      `Successfully pulled image "${image}" in ${wholeMs(pullMs)} (${wholeMs(withWaitingMs)} including waiting). ` +
        `Image size: ${sizeBytes} bytes.`,
    ),
  pullFailed: (image: string, error: string): ImageEvent =>
    warning("Failed", `Failed to pull image "${image}": ${error}`),
  backOff: (image: string): ImageEvent => normal("BackOff", `Back-off pulling image "${image}"`),
  inspectFailed: (message: string): ImageEvent => warning("InspectFailed", message),
  neverPull: (message: string): ImageEvent => warning("ErrImageNeverPull", message),
  /** Follows every other one: the container did not start for this reason. */
  notStarted: (reason: string): ImageEvent => warning("Failed", `Error: ${reason}`),
};

export type ImageEvent = Omit<PodEvent, "fieldPath">;

function normal(reason: EventReason, message: string): ImageEvent {
  return { type: "Normal", reason, message };
}

function warning(reason: EventReason, message: string): ImageEvent {
  return { type: "Warning", reason, message };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function wholeMs(ms: number): string {
  return formatDuration(Math.trunc(ms));
}
