import { callsUnderWay } from "../../src/connections/host/syscalls.ts";
import type { Clock, Timer } from "../../src/ground/base/index.ts";

/** Virtual time: nothing fires until `advance` moves the clock over it; due timers then fire in order of time. */
export class FakeClock implements Clock {
  #now: number;
  #setBackMs = 0;
  readonly #start: number;
  readonly #settled: () => Promise<void>;
  readonly #timers = new Set<{ readonly at: number; readonly action: () => void }>();

  /** `settled` waits for the work that a timer has caused; work on real files needs another one than the default. */
  constructor(startMs = Date.UTC(2026, 0, 1), settled: () => Promise<void> = settle) {
    this.#now = startMs;
    this.#start = startMs;
    this.#settled = settled;
  }

  /** Timers not fired yet; a test that ends with some has a leak. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#now - this.#setBackMs;
  }

  /** Sets the time of day back, as an administrator or a time server does; durations are not affected. */
  setBack(ms: number): void {
    this.#setBackMs += ms;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const timer = this.after(ms, () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      });
      const onAbort = (): void => {
        timer.cancel();
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  after(ms: number, action: () => void): Timer {
    const timer = { at: this.#now + Math.max(ms, 0), action };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  /** Moves time forward, firing each due timer and letting the work it causes settle before the next. */
  async advance(ms: number): Promise<void> {
    const target = this.#now + ms;
    await this.#settled();
    for (;;) {
      let next: { readonly at: number; readonly action: () => void } | undefined;
      for (const timer of this.#timers) {
        if (timer.at <= target && (next === undefined || timer.at < next.at)) next = timer;
      }
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.action();
      await this.#settled();
    }
    this.#now = target;
  }
}

/** Lets queued promises and immediates run, a few rounds deep. */
export async function settle(rounds = 5): Promise<void> {
  for (let round = 0; round < rounds; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** As `settle`, but also waits for reading and writing of files to end. */
export async function settleFiles(): Promise<void> {
  for (let calm = 0; calm < 5; calm++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    const isBusy = process.getActiveResourcesInfo().some((resource) => /^(FSReq|CloseReq)/.test(resource));
    if (isBusy || callsUnderWay() > 0) calm = -1;
  }
}
