import type { Clock } from "../../../ground/base/index.ts";
import type { InspectedContainer } from "../engine/index.ts";

/** Whoever is told of an end asks at once. */
const goodForMs = 1_000;
const mostKept = 100;

/**
 * What was seen of containers when Docker told of their end, for whoever asks because of that: Docker is busy with
 * putting such a container away, and would have to be asked the same thing again.
 */
export class JustEnded {
  readonly #clock: Clock;
  /** The oldest first. */
  readonly #seen = new Map<string, { readonly container: InspectedContainer; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  saw(container: InspectedContainer): void {
    this.#seen.delete(container.id);
    // One that runs was started again by hand.
    if (container.state.running) return;
    for (const [id, { until }] of this.#seen) {
      if (until > this.#clock.monotonic() && this.#seen.size < mostKept) break;
      this.#seen.delete(id);
    }
    this.#seen.set(container.id, { container, until: this.#clock.monotonic() + goodForMs });
  }

  /** By its whole id; undefined: Docker has to be asked. */
  get(id: string): InspectedContainer | undefined {
    const seen = this.#seen.get(id);
    return seen !== undefined && seen.until > this.#clock.monotonic() ? seen.container : undefined;
  }

  /** Something has happened to it since, or is about to. */
  forget(id: string): void {
    this.#seen.delete(id);
  }
}
