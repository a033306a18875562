import type { CpuSet } from "../../../ground/base/index.ts";
import type { Hint } from "../topology/hints.ts";
import { isWithin, type NumaMask, type NumaNodes, widthOf } from "../topology/numa-nodes.ts";
import type { CpuTopology } from "./cpu-topology.ts";

/** The sets of NUMA nodes that have as many CPUs, all those that are used again among them. */
export function cpuHints(
  { topology, numa, bySocket }: { topology: CpuTopology; numa: NumaNodes; bySocket: boolean },
  { available, reusable, count }: { available: CpuSet; reusable: CpuSet; count: number },
): readonly Hint[] {
  const nodes = topology.nodes.map(({ id, cpus }) => ({
    mask: numa.maskOf([id]),
    all: cpus.size,
    free: cpus.sizeOfCommon(available),
    reused: cpus.sizeOfCommon(reusable),
  }));
  const withCpus = nodes.reduce((mask, node) => mask | node.mask, 0);
  let fewest = nodes.length;
  const found: NumaMask[] = [];
  for (const mask of numa.sets()) {
    if (!isWithin(mask, withCpus)) continue;
    let [all, free, reused] = [0, 0, 0];
    for (const node of nodes) {
      if ((mask & node.mask) === 0) continue;
      all += node.all;
      free += node.free;
      reused += node.reused;
    }
    if (all >= count) fewest = Math.min(fewest, widthOf(mask));
    if (reused === reusable.size && reused + free >= count) found.push(mask);
  }
  const socketsNeeded = Math.ceil(
    fewest / Math.max(1, Math.floor(nodes.length / Math.max(1, topology.sockets.length))),
  );
  const isPreferred = (mask: NumaMask): boolean =>
    widthOf(mask) === fewest || (bySocket && socketsOf(topology, numa, mask) === socketsNeeded);
  return found.map((mask) => ({ nodes: mask, isPreferred: isPreferred(mask) }));
}

function socketsOf(topology: CpuTopology, numa: NumaNodes, mask: NumaMask): number {
  const ids = numa.idsOf(mask);
  const nodes = topology.nodes.filter(({ id }) => ids.includes(id));
  return topology.sockets.filter(({ cpus }) => nodes.some((node) => node.cpus.sizeOfCommon(cpus) > 0)).length;
}
