import { type SlotPolicy, Slots, type SlotWaiter } from "../../ground/base/index.ts";

/** Pulls take turns: `owners` are the pods that want one, read when a slot frees, and may grow while it waits. */
export function pullSlots(limit: number): Slots<ReadonlySet<string>> {
  return new Slots(limit, new LongestUnserved());
}

/**
 * The turn goes to the waiter one of whose owners was served longest ago, so that a pod with many images does not hold
 * up a pod with one.
 */
class LongestUnserved implements SlotPolicy<ReadonlySet<string>> {
  readonly #lastServed = new Map<string, number>();
  #turns = 0;

  next<Waiter extends SlotWaiter<ReadonlySet<string>>>(waiting: ReadonlySet<Waiter>): Waiter | undefined {
    let best: Waiter | undefined;
    let bestAt = Number.POSITIVE_INFINITY;
    for (const waiter of waiting) {
      const servedAt = Math.min(...[...waiter.who].map((owner) => this.#lastServed.get(owner) ?? 0));
      if (best !== undefined && servedAt >= bestAt) continue;
      [best, bestAt] = [waiter, servedAt];
    }
    return best;
  }

  taken(owners: ReadonlySet<string>): void {
    this.#turns++;
    for (const owner of owners) this.#lastServed.set(owner, this.#turns);
  }

  idle(): void {
    this.#lastServed.clear();
  }
}
