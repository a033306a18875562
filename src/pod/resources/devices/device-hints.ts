import type { ListedDevice } from "../../../connections/plugins/index.ts";

export interface DeviceHintRequest {
  readonly count: number;
  /** All that its plugin lists, healthy or not: they say how many NUMA nodes such a request ever needs. */
  readonly devices: ReadonlyMap<string, ListedDevice>;
  /** Healthy, and nobody's. */
  readonly available: ReadonlySet<string>;
  /** The pod has them already; whatever it gets must lie with them. */
  readonly reusable: ReadonlySet<string>;
}

export interface NodeSetHint {
  readonly nodes: number;
  readonly isPreferred: boolean;
}

/**
 * Sets of NUMA nodes that the devices could come from. Undefined: it does not matter where from; none: there are too few.
 * `sets` in the order of their size, with the bits that `maskOf` sets.
 */
export function deviceHints(
  request: DeviceHintRequest,
  numa: { readonly sets: readonly number[]; readonly maskOf: (nodes: readonly number[]) => number },
): readonly NodeSetHint[] | undefined {
  const { count, devices, available, reusable } = request;
  const masks = new Map([...devices].map(([id, { numaNodes }]) => [id, numa.maskOf(numaNodes)]));
  if (![...masks.values()].some((mask) => mask !== 0)) return undefined;
  if (available.size + reusable.size < count) return [];
  // Of a hundred thousand devices most lie alike.
  const tally = (ids: Iterable<string>): ReadonlyMap<number, number> => {
    const amounts = new Map<number, number>();
    for (const id of ids) amounts.set(masks.get(id) ?? 0, (amounts.get(masks.get(id) ?? 0) ?? 0) + 1);
    return amounts;
  };
  const [all, free, own] = [tally(devices.keys()), tally(available), tally(reusable)];
  const placed = reusable.size - (own.get(0) ?? 0);
  const width = (set: number): number => set.toString(2).replaceAll("0", "").length;
  let narrowest = Number.POSITIVE_INFINITY;
  const hints: { nodes: number; width: number }[] = [];
  for (const set of numa.sets) {
    if (touching(all, set) >= count) narrowest = Math.min(narrowest, width(set));
    const kept = touching(own, set);
    if (kept < placed || kept + touching(free, set) < count) continue;
    hints.push({ nodes: set, width: width(set) });
  }
  return hints.map(({ nodes, width: of }) => ({ nodes, isPreferred: of === narrowest }));
}

function touching(amounts: ReadonlyMap<number, number>, set: number): number {
  let sum = 0;
  for (const [mask, amount] of amounts) if ((mask & set) !== 0) sum += amount;
  return sum;
}
