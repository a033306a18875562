import { type Clock, type Outcome, outcomeOf, unlessAborted, withDeadline } from "../../../ground/base/index.ts";

// A look that took no longer costs too little to be kept.
const cheapMs = 100;
// What took long is not done again before so many times its duration has passed...
const restPerWork = 20;
// ...but never rests longer than this: what a pod may do meanwhile is what a limit on its storage allows too much.
const longestRestMs = 60_000;
// Nobody waits longer for an answer; a look that takes longer goes on, and the next to ask may have what it found.
const patienceMs = 10_000;

/**
 * Looks at one thing, for anybody who asks: never two at a time, and not again at once after one that took long.
 * Whoever asks may leave; the look goes on until it ends by itself or nobody may ask any more.
 */
export class PacedLooks<Result> {
  readonly #clock: Clock;
  readonly #ending = new AbortController();
  #running: Promise<Outcome<Result>> | undefined;
  #kept: { readonly outcome: Outcome<Result>; readonly until: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async look(work: (signal: AbortSignal) => Promise<Result>, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted();
    const outcome = this.#recent() ?? (await this.#within(this.#join(work), signal));
    if (outcome.type === "failed") throw outcome.error;
    return outcome.result;
  }

  /** Nobody will ask any more. */
  end(): void {
    this.#ending.abort(new DOMException("nobody asks any more", "AbortError"));
  }

  #within(running: Promise<Outcome<Result>>, signal: AbortSignal): Promise<Outcome<Result>> {
    const late = (): Error => new Error(`took more than ${patienceMs / 1_000} s, and goes on`);
    return withDeadline(this.#clock, patienceMs, late, signal, (bounded) => unlessAborted(running, bounded));
  }

  #recent(): Outcome<Result> | undefined {
    if (this.#kept !== undefined && this.#clock.monotonic() >= this.#kept.until) this.#kept = undefined;
    return this.#kept?.outcome;
  }

  #join(work: (signal: AbortSignal) => Promise<Result>): Promise<Outcome<Result>> {
    if (this.#running !== undefined) return this.#running;
    const startedAt = this.#clock.monotonic();
    this.#running = outcomeOf(work, this.#ending.signal).then((outcome) => {
      this.#running = undefined;
      const now = this.#clock.monotonic();
      const tookMs = now - startedAt;
      const restMs = Math.min(tookMs * restPerWork, longestRestMs);
      if (tookMs >= cheapMs) this.#kept = { outcome, until: now + restMs };
      return outcome;
    });
    return this.#running;
  }
}
