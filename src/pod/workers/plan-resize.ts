import {
  type Container,
  type ContainerResources,
  type DueResize,
  duePodResize,
  dueResize,
  newestOf,
  type ObservedContainer,
  type ResizableResource,
  resizableContainers,
} from "../../ground/model/index.ts";
import type { PlanInput } from "./plan-input.ts";

/** A running container that is to have other resources than it was given. */
export interface ContainerResize extends DueResize {
  readonly running: ObservedContainer;
  readonly container: Container;
}

/** What is to become of the resources of a pod and of its running containers. */
export interface ResizePlan {
  readonly containers: readonly ContainerResize[];
  /** What the pod as a whole was given, and which of that is to change. */
  readonly pod: { readonly given: ContainerResources; readonly changed: readonly ResizableResource[] };
}

export const noResize: ResizePlan = { containers: [], pod: { given: {}, changed: [] } };

export function resizesAnything({ containers, pod }: ResizePlan): boolean {
  return containers.length > 0 || pod.changed.length > 0;
}

/** What running containers, but for those that are killed, and the pod itself need to have what they were promised. */
export function planResize({ pod, observed, given }: PlanInput, killed: ReadonlySet<string>): ResizePlan {
  const containers = resizableContainers(pod).flatMap((container) => {
    const running = newestOf(observed, container.name);
    if (running?.state !== "running" || killed.has(container.name)) return [];
    const due = dueResize(pod, container, running, given);
    return due.changed.length === 0 ? [] : [{ ...due, running, container }];
  });
  return { containers, pod: duePodResize(pod, given) };
}

/** Whether the container says of a resource that changes that it has to start anew to notice. */
export function needsRestart({ resizePolicy = [] }: Container, { changed }: DueResize): boolean {
  return resizePolicy.some(
    ({ resourceName, restartPolicy }) =>
      restartPolicy === "RestartContainer" && changed.some((resource) => resource === resourceName),
  );
}
