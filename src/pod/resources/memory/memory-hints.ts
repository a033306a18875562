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
  const wanted = [...requested];
  const rows = numa.ids.map((id) => {
    const node = machine.get(id);
    return {
      groupInUse: node === undefined || node.assignments === 0 ? undefined : numa.maskOf(node.group),
      allocatable: wanted.map(([type]) => node?.tables.get(type)?.allocatable ?? 0),
      free: wanted.map(([type]) => node?.tables.get(type)?.free ?? 0),
    };
  });
  let fewest = numa.ids.length;
  const found: NumaMask[] = [];
  for (const mask of numa.sets()) {
    const members = rows.filter((_, index) => ((mask >>> index) & 1) === 1);
    const sum = (amount: "allocatable" | "free", type: number): number =>
      members.reduce((total, row) => total + (row[amount][type] ?? 0), 0);
    if (wanted.some(([, bytes], type) => sum("allocatable", type) < bytes)) continue;
    fewest = Math.min(fewest, members.length);
    if (members.some(({ groupInUse }) => groupInUse !== undefined && groupInUse !== mask)) continue;
    const isEnough = wanted.every(([type, bytes], index) => {
      const free = sum("free", index);
      return free >= bytes || free + reusable(numa.idsOf(mask), type) >= bytes;
    });
    if (isEnough) found.push(mask);
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
