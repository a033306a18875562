import { type IdentifiedPod, jsonEqual } from "../../ground/model/index.ts";

type Containers = IdentifiedPod["spec"]["containers"];
type Resources = NonNullable<Containers[number]["resources"]>;

/** What the containers of a pod were promised when it came to the node, by name. */
export type AllocatedResources = Readonly<Record<string, Resources>>;

/** What is promised to the pod: what it was promised before, and to containers without a promise what they ask for. */
export function allocate(pod: IdentifiedPod, before: AllocatedResources = {}): AllocatedResources {
  const { initContainers = [], containers } = pod.spec;
  return Object.fromEntries(
    [...initContainers, ...containers].map(({ name, resources = {} }) => [
      name,
      (Object.hasOwn(before, name) ? before[name] : undefined) ?? resources,
    ]),
  );
}

/**
 * The pod with what it was promised in place of what it asks for since. Nothing changes the resources of a running
 * container here; were the new wish taken for granted, status, cgroups and restarted containers would contradict each
 * other. The same object when it asks for nothing new.
 */
export function withAllocated(pod: IdentifiedPod, allocated: AllocatedResources): IdentifiedPod {
  const { initContainers, containers } = pod.spec;
  const withPromise = (list: Containers): Containers =>
    list.map((container) => {
      const resources = Object.hasOwn(allocated, container.name) ? allocated[container.name] : undefined;
      const isSame = resources === undefined || jsonEqual(resources, container.resources ?? {});
      return isSame ? container : { ...container, resources };
    });
  const promised = withPromise(containers);
  const promisedInit = initContainers === undefined ? undefined : withPromise(initContainers);
  const isSame = (a: Containers | undefined, b: Containers | undefined): boolean =>
    a === b || (a !== undefined && b !== undefined && a.every((container, index) => container === b[index]));
  if (isSame(promised, containers) && isSame(promisedInit, initContainers)) return pod;
  const spec = { ...pod.spec, containers: promised };
  return { ...pod, spec: promisedInit === undefined ? spec : { ...spec, initContainers: promisedInit } };
}
