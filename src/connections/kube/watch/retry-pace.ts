const firstMs = 800;
const longestMs = 30_000;
const progressMs = 500;

/** How long to wait between tries: longer with every failure, and never in step with other nodes. */
export class RetryPace {
  readonly #random: () => number;
  #failures = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** It worked and lasted: go on at once. */
  succeeded(): number {
    this.#failures = 0;
    return 0;
  }

  /** It brought something but did not last: no reason to give it more time each round, nor to hurry. */
  progressed(): number {
    this.#failures = 0;
    return this.#jitter(progressMs);
  }

  failed(retryAfterMs: number | undefined): number {
    const waitMs = Math.min(firstMs * 2 ** this.#failures, longestMs);
    if (waitMs < longestMs) this.#failures++;
    return Math.max(this.#jitter(waitMs), retryAfterMs ?? 0);
  }

  #jitter(ms: number): number {
    return ms * (1 + this.#random());
  }
}
