import { CpuSet } from "../../../ground/base/index.ts";
import type { CpuTopology, CpuUnit } from "./cpu-topology.ts";
import { nodesInOrder, TooFewCpusError, takePacked } from "./take-packed.ts";

/** So many ways to share out are looked at; on machines with a dozen NUMA nodes and more there are millions. */
const mostTries = 100_000;

/**
 * Chooses CPUs evenly from as few NUMA nodes as have them, so that what is left is as even as can be. `group` CPUs are
 * taken at a time: the threads of a core, or one.
 */
export function takeDistributed(topology: CpuTopology, available: CpuSet, count: number, group: number): CpuSet {
  if (count > available.size) throw new TooFewCpusError(count, available.size);
  if (count === 0) return CpuSet.none;
  if (count % group !== 0) return takePacked(topology, available, count);
  const nodes = nodesInOrder(topology, available).map(({ id, cpus }) => ({ id, cpus: cpus.and(available) }));
  const groups = Math.ceil(count / group);
  const groupsPerNode = Math.ceil(Math.ceil(topology.cpus.size / group) / topology.nodes.length);
  const search: Search = { nodes, count, group, triesLeft: mostTries };
  for (let width = Math.ceil(groups / groupsPerNode); width <= Math.min(groups, nodes.length); width++) {
    const sharing = bestSharing(search, width);
    if (sharing !== undefined) return take(topology, sharing, search);
  }
  return takePacked(topology, available, count);
}

interface Search {
  /** With their free CPUs. */
  readonly nodes: readonly CpuUnit[];
  readonly count: number;
  readonly group: number;
  triesLeft: number;
}

/** Each of `even` gives the same number of CPUs; what is then missing comes from `extra`, a group at a time. */
interface Sharing {
  readonly even: readonly CpuUnit[];
  readonly extra: readonly CpuUnit[];
  /** How uneven it leaves the nodes. */
  readonly imbalance: number;
}

function evenShare({ count, group }: Search, width: number): number {
  return Math.floor(count / width / group) * group;
}

function bestSharing(search: Search, width: number): Sharing | undefined {
  let best: Sharing | undefined;
  for (const nodes of combinations(search.nodes, width)) {
    if (best?.imbalance === 0 || search.triesLeft <= 0) break;
    const sharing = sharingAmong(nodes, search);
    if (sharing !== undefined && sharing.imbalance < (best?.imbalance ?? Number.POSITIVE_INFINITY)) best = sharing;
  }
  return best;
}

function sharingAmong(even: readonly CpuUnit[], search: Search): Sharing | undefined {
  search.triesLeft--;
  const { nodes, count, group } = search;
  const share = evenShare(search, even.length);
  const groups = even.reduce((sum, { cpus }) => sum + Math.floor(cpus.size / group), 0);
  if (groups * group < count || even.some(({ cpus }) => cpus.size < share)) return undefined;
  const left = new Map(
    nodes.map(({ id, cpus }) => [id, cpus.size - (even.some((node) => node.id === id) ? share : 0)]),
  );
  const missing = count - share * even.length;
  if (missing === 0) return { even, extra: [], imbalance: deviation([...left.values()]) };
  const able = even.filter(({ id }) => (left.get(id) ?? 0) >= group);
  let best: Sharing | undefined;
  for (let width = able.length; width >= 1; width--) {
    for (const extra of combinations(able, width)) {
      if (search.triesLeft-- <= 0) return best;
      const after = takenInTurns(left, extra, missing, group);
      if (after === undefined) continue;
      const imbalance = deviation([...after.values()]);
      if (imbalance < (best?.imbalance ?? Number.POSITIVE_INFINITY)) best = { even, extra, imbalance };
    }
  }
  return best;
}

/** What is left after these nodes have given a group each in turns; undefined when they can't give as much. */
function takenInTurns(
  left: ReadonlyMap<number, number>,
  givers: readonly CpuUnit[],
  missing: number,
  group: number,
): ReadonlyMap<number, number> | undefined {
  const after = new Map(left);
  for (let rest = missing; rest > 0; ) {
    const before = rest;
    for (const { id } of givers) {
      const own = after.get(id) ?? 0;
      if (rest === 0 || own < group) continue;
      after.set(id, own - group);
      rest -= group;
    }
    // Odd threads are left everywhere, and they do not make a group.
    if (rest === before) return undefined;
  }
  return after;
}

function take(topology: CpuTopology, { even, extra }: Sharing, search: Search): CpuSet {
  const { count, group } = search;
  const share = evenShare(search, even.length);
  let taken = CpuSet.none;
  const takeFrom = ({ cpus }: CpuUnit, amount: number): void => {
    taken = taken.with(takePacked(topology, cpus.without(taken), amount));
  };
  for (const node of even) takeFrom(node, share);
  while (taken.size < count) {
    for (const node of extra) {
      if (taken.size < count && node.cpus.without(taken).size >= group) takeFrom(node, group);
    }
  }
  return taken;
}

function* combinations<Item>(items: readonly Item[], width: number, from = 0): Generator<readonly Item[]> {
  if (width === 0) {
    yield [];
    return;
  }
  for (let index = from; index <= items.length - width; index++) {
    for (const rest of combinations(items, width - 1, index + 1)) yield [items[index] as Item, ...rest];
  }
}

/** The standard deviation. Rounded, as upstream does it: what differs by less counts as equally good. */
function deviation(values: readonly number[]): number {
  const rounded = (value: number): number => Math.round(value * 1000) / 1000;
  const mean = rounded(values.reduce((sum, value) => sum + value, 0) / values.length);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return rounded(Math.sqrt(variance));
}
