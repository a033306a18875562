import {
  type ContainerResources,
  changedResources,
  mostLimits,
  type ResizableResource,
  resizableResources,
  withPodLimits,
} from "./allocated.ts";
import type { Container } from "./kube/gen/types.ts";
import type { ObservedContainer } from "./observed.ts";
import type { IdentifiedPod } from "./pod.ts";

/** What a pod and its containers were given. Where nobody knows, what they were promised is believed. */
export interface GivenResources {
  readonly to: (running: Pick<ObservedContainer, "name">) => ContainerResources | undefined;
  /** What it may have by updates that failed, for all that anybody knows, beside what it was given. */
  readonly tried?: (running: Pick<ObservedContainer, "name">) => readonly ContainerResources[];
  /** The pod as a whole. */
  readonly toPod: () => ContainerResources | undefined;
}

/** What a running container was given, and what it needs to have what it was promised. */
export interface DueResize {
  readonly given: ContainerResources;
  /** What it may use, before (at the most) and after: the pod's own limits count where the container has none. */
  readonly before: ContainerResources;
  readonly after: ContainerResources;
  readonly changed: readonly ResizableResource[];
}

export function dueResize(
  { spec }: IdentifiedPod,
  { resources = {} }: Container,
  running: Pick<ObservedContainer, "name">,
  { to, tried, toPod }: GivenResources,
): DueResize {
  const after = withPodLimits(resources, spec.resources);
  const given = to(running) ?? resources;
  // Promised what it had before somebody tried to give it more, it must be told so; and what it may have got then can't
  // be taken from it unseen.
  const had = [withPodLimits(given, toPod() ?? spec.resources), ...(tried?.(running) ?? [])];
  const differs = had.map((each) => changedResources(each, after));
  const changed = resizableResources.filter((resource) => differs.some((some) => some.includes(resource)));
  return { given, before: mostLimits(had), after, changed };
}

/** The same of the pod as a whole. */
export function duePodResize(
  { spec }: IdentifiedPod,
  { toPod }: GivenResources,
): { readonly given: ContainerResources; readonly changed: readonly ResizableResource[] } {
  const given = toPod() ?? spec.resources ?? {};
  return { given, changed: changedResources(given, spec.resources) };
}
