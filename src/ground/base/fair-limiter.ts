import type { Clock, Timer } from "./clock.ts";

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
  readonly #clock: Clock;
  readonly #limits: FairLimits;
  #held = 0;
  readonly #heldBy = new Map<Key, number>();
  /** Keys in the order of their next turn, each with its waiters in the order they came. */
  readonly #waiting = new Map<Key, Waiter[]>();

  constructor(clock: Clock, limits: FairLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  async run<Result>(key: Key, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    await this.#acquire(key, signal);
    try {
      return await work();
    } finally {
      this.#release(key);
    }
  }

  async #acquire(key: Key, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#held < this.#limits.limit && this.#heldOf(key) < this.#limits.share) {
      this.#take(key);
      return;
    }
    let impatience: Timer | undefined;
    let onAbort = (): void => {};
    try {
      await new Promise<void>((resolve, reject) => {
        const waiter: Waiter = { admit: resolve };
        onAbort = () => {
          this.#leave(key, waiter);
          reject(signal.reason);
        };
        signal.addEventListener("abort", onAbort, { once: true });
        const queue = this.#waiting.get(key);
        if (queue === undefined) this.#waiting.set(key, [waiter]);
        else queue.push(waiter);
        impatience = this.#clock.after(this.#limits.patienceMs, () => {
          if (this.#heldOf(key) === 0 && this.#leave(key, waiter)) this.#admit(key, waiter);
        });
      });
    } finally {
      impatience?.cancel();
      signal.removeEventListener("abort", onAbort);
    }
  }

  #heldOf(key: Key): number {
    return this.#heldBy.get(key) ?? 0;
  }

  #take(key: Key): void {
    this.#held++;
    this.#heldBy.set(key, this.#heldOf(key) + 1);
  }

  #admit(key: Key, waiter: Waiter): void {
    this.#take(key);
    waiter.admit();
  }

  #release(key: Key): void {
    this.#held--;
    const left = this.#heldOf(key) - 1;
    if (left === 0) this.#heldBy.delete(key);
    else this.#heldBy.set(key, left);
    while (this.#held < this.#limits.limit) {
      const next = this.#next();
      if (next === undefined) return;
      this.#admit(next.key, next.waiter);
    }
  }

  /** Takes the first waiter of the first key that may have more out of the queue. */
  #next(): { readonly key: Key; readonly waiter: Waiter } | undefined {
    for (const [key, queue] of this.#waiting) {
      const [waiter] = queue;
      if (waiter === undefined || this.#heldOf(key) >= this.#limits.share) continue;
      queue.shift();
      // To the end of the line, if it has more.
      this.#waiting.delete(key);
      if (queue.length > 0) this.#waiting.set(key, queue);
      return { key, waiter };
    }
    return undefined;
  }

  /** Whether the waiter was still waiting. */
  #leave(key: Key, waiter: Waiter): boolean {
    const queue = this.#waiting.get(key);
    const index = queue?.indexOf(waiter) ?? -1;
    if (queue === undefined || index === -1) return false;
    queue.splice(index, 1);
    if (queue.length === 0) this.#waiting.delete(key);
    return true;
  }
}

interface Waiter {
  admit(): void;
}
