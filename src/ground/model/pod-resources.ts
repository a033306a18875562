import type { Container, PodSpec, ResourceRequirements } from "./kube/gen/types.ts";
import { isSidecar } from "./pod.ts";
import { addAmounts, amountsOf, isHugePages, largerAmounts, type ResourceAmounts } from "./resource-list.ts";

type Side = "requests" | "limits";
type ResourceSpec = Pick<PodSpec, "containers" | "initContainers" | "resources" | "overhead">;

/** What a pod as a whole may claim, in the form the scheduler and the cgroups count it. */
export interface PodResources {
  readonly requests: ResourceAmounts;
  readonly limits: ResourceAmounts;
}

export function podResources(spec: ResourceSpec, overhead: "with overhead" | "without overhead"): PodResources {
  const requests = withPodLevel(sumOfContainers(spec, "requests"), spec, "requests");
  const limits = withPodLevel(sumOfContainers(spec, "limits"), spec, "limits");
  if (overhead === "without overhead") return { requests, limits };
  const extra = amountsOf(spec.overhead);
  // An unlimited resource stays unlimited: overhead only widens limits that exist.
  const extraOfLimited = new Map([...extra].filter(([name]) => limits.has(name)));
  return { requests: addAmounts(requests, extra), limits: addAmounts(limits, extraOfLimited) };
}

/**
 * What the containers claim together. Init containers run one after another beside the sidecars started before them,
 * so the claim is the larger of "all regular containers and sidecars" and "any one moment of initialising".
 */
export function sumOfContainers(spec: ResourceSpec, side: Side): ResourceAmounts {
  let running: ResourceAmounts = new Map();
  for (const container of spec.containers) running = addAmounts(running, amounts(container, side));
  let sidecars: ResourceAmounts = new Map();
  let initialising: ResourceAmounts = new Map();
  for (const container of spec.initContainers ?? []) {
    const own = amounts(container, side);
    if (isSidecar(container)) {
      running = addAmounts(running, own);
      sidecars = addAmounts(sidecars, own);
      initialising = largerAmounts(initialising, sidecars);
    } else {
      initialising = largerAmounts(initialising, addAmounts(sidecars, own));
    }
  }
  return largerAmounts(running, initialising);
}

/** spec.resources of the pod itself, without what may not be set at that level. */
export function podLevelAmounts(spec: Pick<PodSpec, "resources">, side: Side): ResourceAmounts {
  return new Map([...amountsOf(spec.resources?.[side])].filter(([name]) => isPodLevelResource(name)));
}

function withPodLevel(sum: ResourceAmounts, spec: ResourceSpec, side: Side): ResourceAmounts {
  return new Map([...sum, ...podLevelAmounts(spec, side)]);
}

export function isPodLevelResource(name: string): boolean {
  return name === "cpu" || name === "memory" || isHugePages(name);
}

function amounts(container: Container, side: Side): ResourceAmounts {
  const resources: ResourceRequirements | undefined = container.resources;
  return amountsOf(resources?.[side]);
}
