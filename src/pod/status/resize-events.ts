import type { Container, IdentifiedPod, PodEvent } from "../../ground/model/index.ts";

export type ResizeEventReason =
  | "ResizeStarted"
  | "ResizeCompleted"
  | "ResizeDeferred"
  | "ResizeInfeasible"
  | "ResizeError";

const said: Readonly<Record<ResizeEventReason, readonly [PodEvent["type"], string]>> = {
  ResizeStarted: ["Normal", "Pod resize started"],
  ResizeCompleted: ["Normal", "Pod resize completed"],
  ResizeDeferred: ["Warning", "Pod resize Deferred"],
  ResizeInfeasible: ["Warning", "Pod resize Infeasible"],
  ResizeError: ["Warning", "Pod resize error"],
};

/** A pod may have thousands of containers; an event is for people. */
const longestSummary = 8 * 1024;

/** What users read of a resize: the resources that the pod has here, and for which version of its spec. */
export function resizeEvent(
  reason: ResizeEventReason,
  pod: IdentifiedPod,
  { generation = 0, error }: { readonly generation?: number | undefined; readonly error?: string },
): PodEvent {
  const [type, text] = said[reason];
  const { initContainers = [], containers, resources } = pod.spec;
  const summary = JSON.stringify({
    ...(resources === undefined ? {} : { resources }),
    ...(initContainers.length === 0 ? {} : { initContainers: initContainers.map(described) }),
    containers: containers.map(described),
    generation,
    ...(error === undefined ? {} : { error }),
  });
  const message = summary.length > longestSummary ? text : `${text}: ${summary}`;
  return { type, reason, message };
}

function described({ name, resources = {} }: Container): object {
  return { name, resources };
}
