import { oncePer } from "../base/index.ts";
import type { Container, PodSpec, ResourceRequirements } from "./kube/gen/types.ts";
import { isSidecar } from "./pod.ts";
import type { Nano } from "./quantity.ts";
import { addAmounts, addInto, amountsOf, isHugePages, largerAmounts, type ResourceAmounts } from "./resource-list.ts";

type Side = "requests" | "limits";
type ResourceSpec = Pick<PodSpec, "containers" | "initContainers" | "resources" | "overhead">;

/** What a pod as a whole may claim, in the form the scheduler and the cgroups count it. */
export interface PodResources {
  readonly requests: ResourceAmounts;
  readonly limits: ResourceAmounts;
}

export function podResources(spec: ResourceSpec, overhead: "with overhead" | "without overhead"): PodResources {
  return overhead === "with overhead" ? withOverhead(spec) : withoutOverhead(spec);
}

// Asked for each container of a pod, and of all pods for each that comes.
const withoutOverhead = oncePer((spec: ResourceSpec): PodResources => {
  const requests = withPodLevel(sumOfContainers(spec, "requests"), spec, "requests");
  const limits = withPodLevel(sumOfContainers(spec, "limits"), spec, "limits");
  return { requests, limits };
});

const withOverhead = oncePer((spec: ResourceSpec): PodResources => {
  const { requests, limits } = withoutOverhead(spec);
  const extra = amountsOf(spec.overhead);
  // An unlimited resource stays unlimited: overhead only widens limits that exist.
  const extraOfLimited = new Map([...extra].filter(([name]) => limits.has(name)));
  return { requests: addAmounts(requests, extra), limits: addAmounts(limits, extraOfLimited) };
});

/**
 * What the containers claim together. Init containers run one after another beside the sidecars started before them,
 * so the claim is the larger of "all regular containers and sidecars" and "any one moment of initialising".
 */
export function sumOfContainers(spec: ResourceSpec, side: Side): ResourceAmounts {
  const running = new Map<string, Nano>();
  for (const container of spec.containers) addInto(running, amounts(container, side));
  const sidecars = new Map<string, Nano>();
  /** Never less than the sidecars so far, so that only what the container itself names can make it more. */
  const initialising = new Map<string, Nano>();
  for (const container of spec.initContainers ?? []) {
    for (const [name, own] of amounts(container, side)) {
      const beside = sidecars.get(name) ?? 0n;
      if (isSidecar(container)) {
        running.set(name, (running.get(name) ?? 0n) + own);
        sidecars.set(name, beside + own);
      }
      const present = initialising.get(name);
      if (present === undefined || present < beside + own) initialising.set(name, beside + own);
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
