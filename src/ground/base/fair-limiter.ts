import type { Clock } from "./clock.ts";
import { type SlotPolicy, Slots, type SlotWaiter } from "./slots.ts";

export interface FairLimits {
  /** Holders at once, of all keys together. */
  readonly limit: number;
  /** Holders at once of one key. */
  readonly share: number;
  /** A key that holds nothing waits no longer than this, whatever the others do. */
  readonly patienceMs: number;
}

/**
 * As Limiter, for holders that belong to somebody: those who wait are admitted in turn by key, so that a key with many
 * waits for its own and not the others for it.
 */
export class FairLimiter<Key> {
  readonly #slots: Slots<Key>;

  constructor(clock: Clock, { limit, share, patienceMs }: FairLimits) {
    this.#slots = new Slots(limit, new InTurnByKey<Key>(clock, share, patienceMs));
  }

  run<Result>(key: Key, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#slots.run(key, work, signal);
  }

  /** For work that ends elsewhere: the answer gives the place back, once. */
  take(key: Key, signal: AbortSignal): Promise<() => void> {
    return this.#slots.take(key, signal);
  }
}

class InTurnByKey<Key> implements SlotPolicy<Key> {
  readonly patience: NonNullable<SlotPolicy<Key>["patience"]>;
  readonly #share: number;
  readonly #heldBy = new Map<Key, number>();
  /** Keys in the order of their next turn. */
  readonly #line = new Set<Key>();

  constructor(clock: Clock, share: number, patienceMs: number) {
    this.#share = share;
    this.patience = { clock, ms: patienceMs, deserves: (key) => this.#heldOf(key) === 0 };
  }

  next<Waiter extends SlotWaiter<Key>>(waiting: ReadonlySet<Waiter>): Waiter | undefined {
    const firstOf = new Map<Key, Waiter>();
    for (const waiter of waiting) {
      if (firstOf.has(waiter.who)) continue;
      firstOf.set(waiter.who, waiter);
      this.#line.add(waiter.who);
    }
    for (const key of this.#line) {
      const waiter = firstOf.get(key);
      if (waiter !== undefined && this.#heldOf(key) >= this.#share) continue;
      // To the end of the line, if it has more.
      this.#line.delete(key);
      if (waiter !== undefined) return waiter;
    }
    return undefined;
  }

  taken(key: Key): void {
    this.#heldBy.set(key, this.#heldOf(key) + 1);
  }

  freed(key: Key): void {
    const left = this.#heldOf(key) - 1;
    if (left === 0) this.#heldBy.delete(key);
    else this.#heldBy.set(key, left);
  }

  #heldOf(key: Key): number {
    return this.#heldBy.get(key) ?? 0;
  }
}
