import { type ContainerResources, changedResources, type ResizableResource, withPodLimits } from "./allocated.ts";
import type { Container } from "./kube/gen/types.ts";
import type { ObservedContainer } from "./observed.ts";
import type { IdentifiedPod } from "./pod.ts";

/** What a pod and its containers were given. Where nobody knows, what they were promised is believed. */
export interface GivenResources {
  readonly to: (running: Pick<ObservedContainer, "name">) => ContainerResources | undefined;
  /** The pod as a whole. */
  readonly toPod: () => ContainerResources | undefined;
}

/** What a running container was given, and what it needs to have what it was promised. */
export interface DueResize {
  readonly given: ContainerResources;
  /** What it may use, before and after: the pod's own limits count where the container has none. */
  readonly before: ContainerResources;
  readonly after: ContainerResources;
  readonly changed: readonly ResizableResource[];
}

export function dueResize(
  { spec }: IdentifiedPod,
  { resources = {} }: Container,
  running: Pick<ObservedContainer, "name">,
  { to, toPod }: GivenResources,
): DueResize {
  const given = to(running) ?? resources;
  const before = withPodLimits(given, toPod() ?? spec.resources);
  const after = withPodLimits(resources, spec.resources);
  return { given, before, after, changed: changedResources(before, after) };
}

/** The same of the pod as a whole. */
export function duePodResize(
  { spec }: IdentifiedPod,
  { toPod }: GivenResources,
): { readonly given: ContainerResources; readonly changed: readonly ResizableResource[] } {
  const given = toPod() ?? spec.resources ?? {};
  return { given, changed: changedResources(given, spec.resources) };
}
