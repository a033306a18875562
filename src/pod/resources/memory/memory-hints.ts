import type { Hint } from "../topology/hints.ts";
import { type NumaMask, type NumaNodes, widthOf } from "../topology/numa-nodes.ts";
import type { MemoryByNode } from "./memory-state.ts";
import type { RequestedMemory } from "./requested-memory.ts";

/** A hint that names its nodes. */
export interface MemoryHint extends Hint {
  readonly nodes: NumaMask;
}

/** The sets of NUMA nodes from which all that is requested could come. */
export function memoryHints(
  machine: MemoryByNode,
  numa: NumaNodes,
  requested: RequestedMemory,
  /** What the pod has already on these very nodes, and may use again. */
  reusable: (nodes: readonly number[], type: string) => number,
): readonly MemoryHint[] {
  let fewest = numa.ids.length;
  const found: NumaMask[] = [];
  for (const mask of numa.sets()) {
    const ids = numa.idsOf(mask);
    const sum = (type: string, amount: "allocatable" | "free"): number =>
      ids.reduce((total, id) => total + (machine.get(id)?.tables.get(type)?.[amount] ?? 0), 0);
    if ([...requested].some(([type, bytes]) => sum(type, "allocatable") < bytes)) continue;
    fewest = Math.min(fewest, ids.length);
    if (breaksGroups(machine, ids)) continue;
    if ([...requested].some(([type, bytes]) => sum(type, "free") + reusable(ids, type) < bytes)) continue;
    found.push(mask);
  }
  return found.map((nodes) => ({ nodes, isPreferred: widthOf(nodes) === fewest }));
}

/** A node serves by itself or in one group, never both: or its memory could not be told apart. */
export function breaksGroups(machine: MemoryByNode, ids: readonly number[]): boolean {
  return ids.some((id) => {
    const node = machine.get(id);
    if (node === undefined || node.assignments === 0) return false;
    return node.group.length !== ids.length || node.group.some((member) => !ids.includes(member));
  });
}
