import { onAbort } from "./signals.ts";

/** At most `limit` holders at once; the others wait in order. The limit may change while in use. */
export class Limiter {
  #limit: number;
  #held = 0;
  readonly #waiting: Waiter[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get held(): number {
    return this.#held;
  }

  setLimit(limit: number): void {
    this.#limit = limit;
    this.#admit();
  }

  async run<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    await this.#acquire(signal);
    try {
      return await work();
    } finally {
      this.#held--;
      this.#admit();
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#held < this.#limit) {
      this.#held++;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        admit: () => {
          listening[Symbol.dispose]();
          resolve();
        },
      };
      this.#waiting.push(waiter);
      const listening = onAbort(signal, () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal.reason);
      });
    });
  }

  #admit(): void {
    while (this.#held < this.#limit) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#held++;
      next.admit();
    }
  }
}

interface Waiter {
  admit(): void;
}
