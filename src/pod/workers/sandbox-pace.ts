import { errorBackoffMs } from "./error-backoff.ts";

/** A sandbox that has served for longer than this is lost like any other, not one of a row that never serve. */
const servedMs = 120_000;

/**
 * How soon a pod may have its next sandbox. One that never serves (it ends at once, has no address, or is on another
 * network than the pod asks for) would be made anew without end: each tells of itself, which wakes the pod. The first
 * that is lost is replaced a second after it was made or later, those that follow in a row ever more slowly.
 */
export class SandboxPace {
  #begunAt: number | undefined;
  #madeInARow = 0;

  /** How long the next one has to wait. */
  waitMs(now: number): number {
    if (this.#begunAt === undefined) return 0;
    return Math.max(0, this.#begunAt + errorBackoffMs(this.#madeInARow) - now);
  }

  begin(now: number): void {
    if (this.#begunAt !== undefined && now - this.#begunAt > servedMs) this.#madeInARow = 0;
    this.#begunAt = now;
  }

  /** One was made; a try that failed does not count, its failure is waited for elsewhere. */
  made(): void {
    this.#madeInARow++;
  }

  /** The pod is another one now; what was in its way may be gone. */
  startOver(): void {
    this.#begunAt = undefined;
    this.#madeInARow = 0;
  }
}
