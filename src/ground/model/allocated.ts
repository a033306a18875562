import { jsonEqual } from "./json-equal.ts";
import type { Container } from "./kube/gen/types.ts";
import { containersOf, type IdentifiedPod } from "./pod.ts";
import { amountsOf } from "./resource-list.ts";

export type ContainerResources = NonNullable<Container["resources"]>;

/** What the containers of a pod may use, by name. */
export type AllocatedResources = Readonly<Record<string, ContainerResources>>;

/** What is promised to the pod: what it was promised before, and to containers without a promise what they ask for. */
export function allocate(pod: IdentifiedPod, before: AllocatedResources = {}): AllocatedResources {
  return Object.fromEntries(
    resizableContainers(pod).map(({ name, resources = {} }) => [
      name,
      (Object.hasOwn(before, name) ? before[name] : undefined) ?? resources,
    ]),
  );
}

/** What may be resized in place: regular containers and sidecars. */
export function resizableContainers(pod: IdentifiedPod): readonly Container[] {
  return containersOf(pod).flatMap(({ kind, container }) =>
    kind === "regular" || kind === "sidecar" ? [container] : [],
  );
}

/**
 * The pod with what it was promised in place of what it asks for since: this is the pod that is run, and that others
 * are measured against. The same object when it asks for nothing new.
 */
export function withAllocated(pod: IdentifiedPod, allocated: AllocatedResources): IdentifiedPod {
  const { initContainers, containers } = pod.spec;
  const withPromise = (list: readonly Container[]): readonly Container[] =>
    list.map((container) => {
      const resources = Object.hasOwn(allocated, container.name) ? allocated[container.name] : undefined;
      const isSame = resources === undefined || jsonEqual(resources, container.resources ?? {});
      return isSame ? container : { ...container, resources };
    });
  const promised = withPromise(containers);
  const promisedInit = initContainers === undefined ? undefined : withPromise(initContainers);
  const isSame = (a: readonly Container[] | undefined, b: readonly Container[] | undefined): boolean =>
    a === b || (a !== undefined && b !== undefined && a.every((container, index) => container === b[index]));
  if (isSame(promised, containers) && isSame(promisedInit, initContainers)) return pod;
  const spec = { ...pod.spec, containers: promised };
  return { ...pod, spec: promisedInit === undefined ? spec : { ...spec, initContainers: promisedInit } };
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

/** In billionths; undefined where nothing is asked for. */
export function amountIn(
  resources: ContainerResources | undefined,
  list: "requests" | "limits",
  resource: ResizableResource,
): bigint | undefined {
  const amount = amountsOf(resources?.[list]).get(resource);
  return amount === 0n ? undefined : amount;
}
