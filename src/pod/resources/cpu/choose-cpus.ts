import { CpuSet } from "../../../ground/base/index.ts";
import type { NumaMask, NumaNodes } from "../topology/numa-nodes.ts";
import type { CpuOptions } from "./cpu-settings.ts";
import { type CpuTopology, union } from "./cpu-topology.ts";
import { takeDistributed } from "./take-distributed.ts";
import { takePacked } from "./take-packed.ts";

/** Chooses CPUs as the options ask for. Throws TooFewCpusError. */
export function chooseCpus(topology: CpuTopology, available: CpuSet, count: number, options: CpuOptions): CpuSet {
  if (options.acrossNodes) {
    return takeDistributed(topology, available, count, options.wholeCoresOnly ? topology.threadsPerCore : 1);
  }
  const order = options.acrossCores ? "spread" : "packed";
  return takePacked(topology, available, count, { order, keepsToCaches: options.byCache });
}

/** The same, those of the NUMA nodes in the mask first. */
export function chooseAligned(
  { topology, numa, options }: { topology: CpuTopology; numa: NumaNodes; options: CpuOptions },
  available: CpuSet,
  count: number,
  nodes: NumaMask | undefined,
): CpuSet {
  const choose = (among: CpuSet): CpuSet => {
    const aligned = nodes === undefined ? CpuSet.none : among.and(alignedCpus(topology, numa.idsOf(nodes), options));
    const first = chooseCpus(topology, aligned, Math.min(count, aligned.size), options);
    return first.with(chooseCpus(topology, among.without(first), count - first.size, options));
  };
  const chosen = choose(available);
  if (!options.wholeCoresOnly || topology.wholeCores(chosen).size === chosen.size) return chosen;
  // Halves of cores were in the way, such as siblings of reserved CPUs: whole ones are what was promised.
  const whole = topology.cores.filter(({ cpus }) => cpus.isWithin(available));
  return choose(union(whole));
}

function alignedCpus(topology: CpuTopology, nodeIds: readonly number[], { bySocket }: CpuOptions): CpuSet {
  const inNodes = union(topology.nodes.filter(({ id }) => nodeIds.includes(id)));
  return bySocket ? union(topology.sockets.filter(({ cpus }) => cpus.sizeOfCommon(inNodes) > 0)) : inNodes;
}
