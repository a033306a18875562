import { onesIn } from "../../../ground/base/index.ts";

/** Some of a machine's NUMA nodes: bit i stands for the i-th of them in the order of their numbers. */
export type NumaMask = number;

/** There are 2^n sets of n nodes, and each is looked at for each container: with more nodes that is no use to anybody. */
export const mostAlignedNodes = 16;

/** The NUMA nodes of a machine, and sets of them. */
export class NumaNodes {
  /** Rising. */
  readonly ids: readonly number[];
  /** All of them; only of use up to `mostAlignedNodes`. */
  readonly all: NumaMask;
  #sets: readonly NumaMask[] | undefined;

  constructor(ids: readonly number[]) {
    this.ids = ids.toSorted((a, b) => a - b);
    this.all = 2 ** Math.min(ids.length, 31) - 1;
  }

  /** Every set but the empty one: the small ones first, those with lower numbers before others. */
  sets(): readonly NumaMask[] {
    this.#sets ??= setsOf(this.ids.length);
    return this.#sets;
  }

  maskOf(ids: Iterable<number>): NumaMask {
    let mask = 0;
    for (const id of ids) {
      const index = this.ids.indexOf(id);
      if (index >= 0) mask |= 1 << index;
    }
    return mask;
  }

  idsOf(mask: NumaMask): readonly number[] {
    return this.ids.filter((_, index) => has(mask, index));
  }
}

function has(mask: NumaMask, index: number): boolean {
  return ((mask >>> index) & 1) === 1;
}

export function widthOf(mask: NumaMask): number {
  return onesIn(mask);
}

export function isWithin(part: NumaMask, whole: NumaMask): boolean {
  return (part & whole) === part;
}

/** Fewer nodes are better, then lower numbers: below zero when `a` is the better one. */
export function compareMasks(a: NumaMask, b: NumaMask): number {
  return widthOf(a) - widthOf(b) || a - b;
}

function setsOf(count: number): readonly NumaMask[] {
  if (count > mostAlignedNodes) throw new Error(`there are too many sets of ${count} NUMA nodes to look at each`);
  const masks = Array.from({ length: 2 ** count - 1 }, (_, index) => index + 1);
  // Read from the lowest node on, a set that has it comes before one that has not.
  const reading = (mask: NumaMask): number =>
    Array.from({ length: count }, (_, index) => index).reduce((sum, index) => sum * 2 + (has(mask, index) ? 0 : 1), 0);
  return masks
    .map((mask) => ({ mask, width: widthOf(mask), reading: reading(mask) }))
    .sort((a, b) => a.width - b.width || a.reading - b.reading)
    .map(({ mask }) => mask);
}
