import {
  formatQuantity,
  isHugePages,
  parseQuantity,
  type ResourceAmounts,
  wholeUnits,
} from "../../../ground/model/index.ts";

/** Bytes that pods may not have: by NUMA node, then by type. */
export type MemoryReserve = ReadonlyMap<number, ReadonlyMap<string, number>>;

/** The settings of reserved memory contradict each other or the machine. */
class ReservedMemoryError extends Error {
  override readonly name = "ReservedMemoryError";
}

/**
 * What of each NUMA node is kept from pods. What is reserved node by node must be as much as the node withholds from
 * pods altogether, or the scheduler would count on memory that nobody gets.
 */
export function memoryReserve(
  settings: readonly { readonly numaNode: number; readonly limits: Readonly<Record<string, string>> }[],
  nodeIds: readonly number[],
  /** What the node withholds from pods: reservations and hard eviction together. */
  withheld: ResourceAmounts,
): MemoryReserve {
  const reserve = new Map<number, Map<string, number>>();
  const sums = new Map<string, bigint>([["memory", 0n]]);
  for (const name of withheld.keys()) if (isHugePages(name)) sums.set(name, 0n);
  for (const { numaNode, limits } of settings) {
    if (!nodeIds.includes(numaNode)) {
      const what = `references a NUMA node ${numaNode} that does not exist on this machine`;
      throw new ReservedMemoryError(`the reserved memory configuration ${what}`);
    }
    const own = reserve.get(numaNode) ?? new Map<string, number>();
    reserve.set(numaNode, own);
    for (const [type, text] of Object.entries(limits)) {
      const bytes = wholeUnits(parseQuantity(text));
      if (bytes > largestInt64) throw new ReservedMemoryError("could not covert a variable of type Quantity to int64");
      own.set(type, (own.get(type) ?? 0) + Number(bytes));
      sums.set(type, (sums.get(type) ?? 0n) + bytes);
    }
  }
  for (const [type, sum] of sums) checkSum(type, sum, wholeUnits(withheld.get(type) ?? 0n));
  if ([...reserve.values()].every((own) => (own.get("memory") ?? 0) === 0)) {
    throw new ReservedMemoryError("[memorymanager] you should specify the system reserved memory");
  }
  return reserve;
}

const largestInt64 = 2n ** 63n - 1n;

function checkSum(type: string, sum: bigint, wanted: bigint): void {
  if (sum === wanted) return;
  const [found, expected] = [sum, wanted].map((bytes) => formatQuantity(bytes * 1_000_000_000n, "binary"));
  const amounts = `the total amount "${found}" of type "${type}" is not equal to the value "${expected}"`;
  const remedy = isHugePages(type)
    ? "; huge pages can't be withheld from pods, so they can't be reserved here either: take the entry out"
    : "";
  throw new ReservedMemoryError(`${amounts} determined by Node Allocatable feature${remedy}`);
}
