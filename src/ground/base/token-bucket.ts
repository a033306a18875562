import type { Clock } from "./clock.ts";

/** Lets through `perSecond` on average and `burst` at once. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #clock: Clock;
  /** Below zero while callers wait for tokens that are promised to them. */
  #tokens: number;
  #filledAt: number;

  constructor(perSecond: number, burst: number, clock: Clock) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#clock = clock;
    this.#tokens = burst;
    this.#filledAt = clock.monotonic();
  }

  /** Takes a token if there is one; never waits. */
  tryTake(): boolean {
    this.#fill();
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  /** Waits for a token, in the order of the calls; resolves with how long that took. */
  async take(signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    this.#fill();
    this.#tokens--;
    if (this.#tokens >= 0) return 0;
    const waitMs = (-this.#tokens / this.#perSecond) * 1_000;
    try {
      await this.#clock.sleep(waitMs, signal);
    } catch (error) {
      this.#tokens++;
      throw error;
    }
    return waitMs;
  }

  #fill(): void {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1_000) * this.#perSecond);
    this.#filledAt = now;
  }
}
