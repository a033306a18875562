import { jsonEqual } from "./json-equal.ts";
import type { Container, PodSpec } from "./kube/gen/types.ts";
import { containersOf, type IdentifiedPod } from "./pod.ts";
import { amountsOf } from "./resource-list.ts";

export type ContainerResources = NonNullable<Container["resources"]>;

/** What a pod may use: as a whole, where it says so, and by container. */
export interface AllocatedResources {
  /** `spec.resources`; "none": it says nothing of itself as a whole; undefined: nobody has noted whether it does. */
  readonly pod?: ContainerResources | "none" | undefined;
  readonly containers: Readonly<Record<string, ContainerResources>>;
}

/** What is promised to the pod: what it was promised before, and where there is no promise what it asks for. */
export function allocate(pod: IdentifiedPod, before: AllocatedResources = { containers: {} }): AllocatedResources {
  return {
    pod: before.pod ?? podLevelOf(pod),
    containers: Object.fromEntries(
      resizableContainers(pod).map(({ name, resources = {} }) => [
        name,
        (Object.hasOwn(before.containers, name) ? before.containers[name] : undefined) ?? resources,
      ]),
    ),
  };
}

function podLevelOf({ spec }: IdentifiedPod): ContainerResources | "none" {
  return spec.resources ?? "none";
}

/** What may be resized in place: all but what people attach to a pod. */
export function resizableContainers(pod: IdentifiedPod): readonly Container[] {
  return containersOf(pod).flatMap(({ kind, container }) => (kind === "ephemeral" ? [] : [container]));
}

/**
 * The pod with what it was promised in place of what it asks for since: this is the pod that is run, and that others
 * are measured against. The same object when it asks for nothing new.
 */
export function withAllocated(pod: IdentifiedPod, allocated: AllocatedResources): IdentifiedPod {
  const { initContainers, containers } = pod.spec;
  const withPromise = (list: readonly Container[]): readonly Container[] =>
    list.map((container) => {
      const { name } = container;
      const resources = Object.hasOwn(allocated.containers, name) ? allocated.containers[name] : undefined;
      const isSame = resources === undefined || jsonEqual(resources, container.resources ?? {});
      return isSame ? container : { ...container, resources };
    });
  const promised = withPromise(containers);
  const promisedInit = initContainers === undefined ? undefined : withPromise(initContainers);
  const isSame = (a: readonly Container[] | undefined, b: readonly Container[] | undefined): boolean =>
    a === b || (a !== undefined && b !== undefined && a.every((container, index) => container === b[index]));
  const podLevel = allocated.pod ?? podLevelOf(pod);
  const isSamePod = jsonEqual(podLevel, podLevelOf(pod));
  if (isSame(promised, containers) && isSame(promisedInit, initContainers) && isSamePod) return pod;
  const spec = { ...(isSamePod ? pod.spec : withPodLevel(pod.spec, podLevel)), containers: promised };
  return { ...pod, spec: promisedInit === undefined ? spec : { ...spec, initContainers: promisedInit } };
}

function withPodLevel(spec: IdentifiedPod["spec"], podLevel: ContainerResources | "none"): IdentifiedPod["spec"] {
  const { resources: _asked, ...others } = spec;
  return podLevel === "none" ? others : { ...others, resources: podLevel };
}

export const resizableResources = ["cpu", "memory"] as const;
export type ResizableResource = (typeof resizableResources)[number];

/** Which of the resources that may be resized differ, in the request or in the limit. */
export function changedResources(
  from: ContainerResources | undefined,
  to: ContainerResources | undefined,
): readonly ResizableResource[] {
  return resizableResources.filter((resource) =>
    (["requests", "limits"] as const).some((list) => amountIn(from, list, resource) !== amountIn(to, list, resource)),
  );
}

/** The resources before, with the new values of those that are named. */
export function withAmountsOf(
  before: ContainerResources | undefined,
  after: ContainerResources | undefined,
  resources: readonly ResizableResource[],
): ContainerResources {
  const list = (key: "requests" | "limits"): Readonly<Record<string, string>> => {
    const values = { ...before?.[key] };
    for (const resource of resources) {
      const value = after?.[key]?.[resource];
      if (value === undefined) delete values[resource];
      else values[resource] = value;
    }
    return values;
  };
  return { ...before, requests: list("requests"), limits: list("limits") };
}

/** What a container may use, the pod's own limit where it has none: no more than that is there for it. */
export function withPodLimits(
  resources: ContainerResources | undefined,
  podLevel: PodSpec["resources"],
): ContainerResources {
  const missing = resizableResources.filter(
    (resource) =>
      amountIn(resources, "limits", resource) === undefined && amountIn(podLevel, "limits", resource) !== undefined,
  );
  if (missing.length === 0) return resources ?? {};
  const filled = Object.fromEntries(missing.map((resource) => [resource, podLevel?.limits?.[resource] ?? "0"]));
  return { ...resources, limits: { ...resources?.limits, ...filled } };
}

/** The first of them, with the largest limits of all: one that has no limit may use more than any other. */
export function mostLimits(all: readonly ContainerResources[]): ContainerResources {
  const [first = {}] = all;
  const limits: Record<string, string> = { ...first.limits };
  for (const resource of resizableResources) {
    const most = all.reduce((one, other) => (isLimitedMore(one, other, resource) ? other : one), first);
    limits[resource] = most.limits?.[resource] ?? "0";
  }
  return { ...first, limits };
}

function isLimitedMore(one: ContainerResources, other: ContainerResources, resource: ResizableResource): boolean {
  const [limit, otherLimit] = [amountIn(one, "limits", resource), amountIn(other, "limits", resource)];
  return limit !== undefined && (otherLimit === undefined || otherLimit > limit);
}

/** In billionths; undefined where nothing is asked for. */
export function amountIn(
  resources: ContainerResources | undefined,
  list: "requests" | "limits",
  resource: ResizableResource,
): bigint | undefined {
  const amount = amountsOf(resources?.[list]).get(resource);
  return amount === 0n ? undefined : amount;
}
