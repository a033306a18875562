/**
 * At most `limit` pieces of work at once. When a slot frees, the turn goes to the waiter one of whose owners was served
 * longest ago, so that a pod with many images does not hold up a pod with one.
 */
export class FairSlots {
  readonly #limit: number;
  readonly #waiting: Waiter[] = [];
  readonly #lastServed = new Map<string, number>();
  #held = 0;
  #turns = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** `owners` is read when a slot frees: it may grow while the work waits. */
  async run<Result>(owners: ReadonlySet<string>, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted();
    if (this.#held < this.#limit) this.#serve(owners);
    else await this.#queue(owners, signal);
    try {
      return await work();
    } finally {
      this.#held--;
      this.#admit();
      if (this.#held === 0) this.#lastServed.clear();
    }
  }

  #queue(owners: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        owners,
        admit: () => {
          signal.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(waiter);
    });
  }

  #admit(): void {
    while (this.#held < this.#limit) {
      const next = this.#waiting.reduce<Waiter | undefined>(
        (best, waiter) => (best === undefined || this.#servedAt(waiter) < this.#servedAt(best) ? waiter : best),
        undefined,
      );
      if (next === undefined) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#serve(next.owners);
      next.admit();
    }
  }

  #serve(owners: ReadonlySet<string>): void {
    this.#held++;
    this.#turns++;
    for (const owner of owners) this.#lastServed.set(owner, this.#turns);
  }

  #servedAt(waiter: Waiter): number {
    return Math.min(...[...waiter.owners].map((owner) => this.#lastServed.get(owner) ?? 0));
  }
}

interface Waiter {
  readonly owners: ReadonlySet<string>;
  admit(): void;
}
