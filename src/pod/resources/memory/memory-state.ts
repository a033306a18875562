import type { PodUid } from "../../../ground/model/index.ts";

/** Memory, or huge pages of one size, of one NUMA node. In bytes. */
export interface MemoryTable {
  readonly total: number;
  readonly systemReserved: number;
  readonly allocatable: number;
  readonly reserved: number;
  readonly free: number;
}

export interface NumaMemory {
  /** How many pairs of a container and a type have memory here. */
  readonly assignments: number;
  /** The nodes that it serves together with, itself included: while it serves, it does so for one such group only. */
  readonly group: readonly number[];
  /** By type: "memory", "hugepages-2Mi"… */
  readonly tables: ReadonlyMap<string, MemoryTable>;
}

/** By the number of the node. */
export type MemoryByNode = ReadonlyMap<number, NumaMemory>;

/** Memory of one type that a container has on these nodes. */
export interface MemoryBlock {
  /** Rising. */
  readonly nodes: readonly number[];
  readonly type: string;
  readonly bytes: number;
}

export type BlocksByPod = ReadonlyMap<PodUid, ReadonlyMap<string, readonly MemoryBlock[]>>;

/** Who has memory of which nodes, and what is left on each. */
export interface MemoryState {
  readonly machine: MemoryByNode;
  readonly blocks: BlocksByPod;
}

/** Takes memory from the nodes, from the lowest as much as it has, then from the next. */
export function taken(machine: MemoryByNode, { nodes, type, bytes }: MemoryBlock): MemoryByNode {
  let missing = bytes;
  return changed(machine, nodes, type, (node, table) => {
    const amount = Math.min(missing, table.free);
    missing -= amount;
    return { node: { assignments: node.assignments + 1, group: nodes }, moved: amount };
  });
}

/** Gives it back in the same order, which need not be from where it was taken: a group is one to those who use it. */
function released(machine: MemoryByNode, { nodes, type, bytes }: MemoryBlock): MemoryByNode {
  let left = bytes;
  return changed(machine, nodes, type, (node, table, id) => {
    const amount = Math.min(left, table.reserved);
    left -= amount;
    const assignments = node.assignments - 1;
    return { node: { assignments, group: assignments === 0 ? [id] : node.group }, moved: -amount };
  });
}

function changed(
  machine: MemoryByNode,
  nodes: readonly number[],
  type: string,
  change: (
    node: NumaMemory,
    table: MemoryTable,
    id: number,
  ) => { readonly node: Omit<NumaMemory, "tables">; readonly moved: number },
): MemoryByNode {
  const next = new Map(machine);
  for (const id of nodes) {
    const before = next.get(id);
    const table = before?.tables.get(type);
    if (before === undefined || table === undefined) continue;
    const { node, moved } = change(before, table, id);
    const after = { ...table, reserved: table.reserved + moved, free: table.free - moved };
    next.set(id, { ...node, tables: new Map(before.tables).set(type, after) });
  }
  return next;
}

export function blocksOf({ blocks }: MemoryState, uid: PodUid, container: string): readonly MemoryBlock[] | undefined {
  return blocks.get(uid)?.get(container);
}

export function withBlocks(
  { machine, blocks }: MemoryState,
  uid: PodUid,
  container: string,
  own: readonly MemoryBlock[],
): MemoryState {
  return { machine, blocks: new Map(blocks).set(uid, new Map(blocks.get(uid)).set(container, own)) };
}

/** The container needs its memory no longer. */
export function withoutContainer(state: MemoryState, uid: PodUid, container: string): MemoryState {
  const own = blocksOf(state, uid, container);
  if (own === undefined) return state;
  const containers = new Map(state.blocks.get(uid));
  containers.delete(container);
  const blocks = new Map(state.blocks);
  if (containers.size === 0) blocks.delete(uid);
  else blocks.set(uid, containers);
  return { machine: own.reduce(released, state.machine), blocks };
}

export function withoutPodMemory(state: MemoryState, uid: PodUid): MemoryState {
  const containers = [...(state.blocks.get(uid)?.keys() ?? [])];
  return containers.reduce((next, container) => withoutContainer(next, uid, container), state);
}
