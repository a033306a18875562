import type { Clock } from "./clock.ts";
import { Pause } from "./pause.ts";

/** A collector that knows itself when it wants to run next. */
export interface Collector {
  /** On the scale of the clock that is never set. */
  readonly nextCheckAt: number;
  collect(signal: AbortSignal): Promise<void>;
}

/** Runs a collector whenever it is due. */
export class CollectorLoop {
  readonly #collector: Collector;
  readonly #clock: Clock;
  readonly #pause: Pause;

  constructor(collector: Collector, clock: Clock) {
    this.#collector = collector;
    this.#clock = clock;
    this.#pause = new Pause(clock);
  }

  /** It may be due earlier than it thought. */
  soon(): void {
    this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waitMs = this.#collector.nextCheckAt - this.#clock.monotonic();
      if (waitMs > 0) await this.#pause.wait(waitMs, signal);
      else await this.#collector.collect(signal);
    }
  }
}
