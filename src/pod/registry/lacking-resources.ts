import {
  addAmounts,
  type IdentifiedPod,
  milliUnits,
  podResources,
  type ResourceAmounts,
  wholeUnits,
} from "../../ground/model/index.ts";

/** What a pod requests of a resource, what others were promised of it, and what the node has for all of them. */
export interface ResourceSum {
  readonly resource: string;
  readonly requested: bigint;
  readonly used: bigint;
  readonly capacity: bigint;
}

/** Of this resource, the node has less left than a pod requests. */
export type Lack = ResourceSum;

/** What is not left for the pod beside the others, a place among the pods included. */
export function lackingResources(
  pod: IdentifiedPod,
  others: readonly IdentifiedPod[],
  allocatable: ResourceAmounts,
): readonly Lack[] {
  return resourceSums(pod, others, allocatable).filter(isLacking);
}

export function isLacking({ requested, used, capacity }: ResourceSum): boolean {
  return used + requested > capacity;
}

/** Of all that the pod requests and the node counts. */
export function resourceSums(
  pod: IdentifiedPod,
  others: readonly IdentifiedPod[],
  allocatable: ResourceAmounts,
): readonly ResourceSum[] {
  const sums: ResourceSum[] = [];
  const most = allocatable.get("pods");
  if (most !== undefined)
    sums.push({ resource: "pods", requested: 1n, used: BigInt(others.length), capacity: wholeUnits(most) });
  const { requests } = podResources(pod.spec, "with overhead");
  let used: ResourceAmounts = new Map();
  for (const other of others) used = addAmounts(used, podResources(other.spec, "with overhead").requests);
  for (const resource of ["cpu", "memory", "ephemeral-storage", ...extended(requests)]) {
    const requested = requests.get(resource) ?? 0n;
    const capacity = allocatable.get(resource);
    // What the node does not list is none of ours to count.
    if (requested === 0n || capacity === undefined) continue;
    sums.push({ resource, requested, used: used.get(resource) ?? 0n, capacity });
  }
  return sums;
}

function extended(requests: ResourceAmounts): readonly string[] {
  return [...requests.keys()].filter((name) => name.includes("/"));
}

/** How amounts of a resource are written in messages. */
export function unitsOf(resource: string): (amount: bigint) => bigint {
  if (resource === "pods") return (amount) => amount;
  return resource === "cpu" ? milliUnits : wholeUnits;
}
