import type { Clock } from "../../ground/base/index.ts";

/**
 * Pods start a few at a time, so that in a burst the first are ready early instead of all late. A start that takes
 * much longer than usual stops counting: a stuck pod never keeps the others waiting.
 */
export class StartSlots {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(clock: Clock, slots: number) {
    this.#clock = clock;
    this.#free = slots;
  }

  async run<Result>(start: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    await this.#acquire(signal);
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      this.#free++;
      this.#admit();
    };
    const overdue = this.#clock.after(patienceMs, release);
    try {
      return await start();
    } finally {
      overdue.cancel();
      release();
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const admit = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(admit), 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(admit);
    });
  }

  #admit(): void {
    while (this.#free > 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#free--;
      next();
    }
  }
}

const patienceMs = 2_000;
