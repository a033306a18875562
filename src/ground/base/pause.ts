import type { Clock } from "./clock.ts";
import { waitFor } from "./signals.ts";

/** A wait that can be cut short: for loops that run rarely, but at once when somebody has reason to ask. */
export class Pause {
  readonly #clock: Clock;
  #end: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves after `ms` or when cut short. Rejects with the signal's reason when aborted, as a sleep does: whoever waits
   * must not act once more after it was told to stop.
   */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    await waitFor(signal, (done) => {
      this.#end = done;
      const timer = this.#clock.after(ms, done);
      return () => {
        timer.cancel();
        if (this.#end === done) this.#end = undefined;
      };
    });
  }

  cutShort(): void {
    this.#end?.();
  }
}
