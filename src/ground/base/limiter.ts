import { Slots } from "./slots.ts";

/** At most `limit` holders at once; the others wait in the order they came. */
export class Limiter {
  readonly #slots: Slots<undefined>;

  constructor(limit: number) {
    this.#slots = new Slots(limit, { next: ([first]) => first });
  }

  get held(): number {
    return this.#slots.held;
  }

  run<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#slots.run(undefined, work, signal);
  }
}
