import type { CpuPlace, MachineTopology } from "../../src/connections/host/index.ts";

/** A machine as users draw it: so many sockets, NUMA nodes and cores, with siblings far apart or interleaved. */
export interface MachineDrawing {
  readonly sockets: number;
  readonly nodesPerSocket?: number;
  readonly coresPerNode: number;
  readonly threads?: number;
  /** Cores that share a last-level cache; undefined: all of a node share one. */
  readonly coresPerCache?: number;
  /** True: the cores are dealt out to the sockets one by one. */
  readonly interleaved?: boolean;
  readonly memoryBytes?: number;
  readonly hugePages?: ReadonlyMap<bigint, number>;
  readonly distances?: (from: number, to: number) => number;
}

export function madeUpTopology(drawing: MachineDrawing): MachineTopology {
  const { sockets, nodesPerSocket = 1, coresPerNode, threads = 1, coresPerCache, interleaved = false } = drawing;
  const nodeCount = sockets * nodesPerSocket;
  const coreCount = nodeCount * coresPerNode;
  const nodeIds = Array.from({ length: nodeCount }, (_, id) => id);
  const nodes = nodeIds.map((id) => {
    const cpus = Array.from({ length: coresPerNode * threads }, (_, index): CpuPlace => {
      const inNode = index % coresPerNode;
      const core = interleaved ? inNode * nodeCount + id : id * coresPerNode + inNode;
      const thread = Math.floor(index / coresPerNode);
      return {
        id: thread * coreCount + core,
        core,
        socket: Math.floor(id / nodesPerSocket),
        cache: coresPerCache === undefined ? undefined : Math.floor(core / coresPerCache),
      };
    });
    return {
      id,
      cpus,
      memoryBytes: drawing.memoryBytes ?? 10 * 1024 ** 3,
      hugePages: drawing.hugePages ?? new Map<bigint, number>(),
      distances: drawing.distances && nodeIds.map((to) => drawing.distances?.(id, to) ?? 10),
    };
  });
  return { nodes };
}

/** Two sockets of four cores with two threads: 0-3,8-11 and 4-7,12-15. */
export const machineA = madeUpTopology({ sockets: 2, coresPerNode: 4, threads: 2 });
/** The same with three cores each, dealt out in turns. */
export const machineB = madeUpTopology({ sockets: 2, coresPerNode: 3, threads: 2, interleaved: true });
/** Two NUMA nodes in each of two sockets. */
export const machineC = madeUpTopology({ sockets: 2, nodesPerSocket: 2, coresPerNode: 4, threads: 2 });
/** One socket with four last-level caches. */
export const machineU = madeUpTopology({ sockets: 1, coresPerNode: 16, threads: 2, coresPerCache: 4 });
