import type { Clock } from "./clock.ts";
import { onAbort } from "./signals.ts";

/** A wait that can be cut short: for loops that run rarely, but at once when somebody has reason to ask. */
export class Pause {
  readonly #clock: Clock;
  #end: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after `ms`, when cut short, or when the signal fires. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        timer.cancel();
        listening[Symbol.dispose]();
        this.#end = undefined;
        resolve();
      };
      const timer = this.#clock.after(ms, end);
      const listening = onAbort(signal, end);
      this.#end = end;
    });
  }

  cutShort(): void {
    this.#end?.();
  }
}
