import {
  addAmounts,
  type IdentifiedPod,
  milliUnits,
  podResources,
  type ResourceAmounts,
  wholeUnits,
} from "../../ground/model/index.ts";

/** Of this resource, the node has less left than a pod requests. */
export interface Lack {
  readonly resource: string;
  readonly requested: bigint;
  readonly used: bigint;
  readonly capacity: bigint;
}

/** What is not left for the pod beside the others, a place among the pods included. */
export function lackingResources(
  pod: IdentifiedPod,
  others: readonly IdentifiedPod[],
  allocatable: ResourceAmounts,
): readonly Lack[] {
  const lacks: Lack[] = [];
  const [count, most] = [BigInt(others.length), allocatable.get("pods")];
  if (most !== undefined && count + 1n > wholeUnits(most))
    lacks.push({ resource: "pods", requested: 1n, used: count, capacity: wholeUnits(most) });
  const { requests } = podResources(pod.spec, "with overhead");
  let used: ResourceAmounts = new Map();
  for (const other of others) used = addAmounts(used, podResources(other.spec, "with overhead").requests);
  for (const resource of ["cpu", "memory", "ephemeral-storage", ...extended(requests)]) {
    const requested = requests.get(resource) ?? 0n;
    const capacity = allocatable.get(resource);
    // What the node does not list is none of ours to count.
    if (requested === 0n || capacity === undefined) continue;
    const taken = used.get(resource) ?? 0n;
    if (taken + requested > capacity) lacks.push({ resource, requested, used: taken, capacity });
  }
  return lacks;
}

function extended(requests: ResourceAmounts): readonly string[] {
  return [...requests.keys()].filter((name) => name.includes("/"));
}

/** How amounts of a resource are written in messages. */
export function unitsOf(resource: string): (amount: bigint) => bigint {
  if (resource === "pods") return (amount) => amount;
  return resource === "cpu" ? milliUnits : wholeUnits;
}
