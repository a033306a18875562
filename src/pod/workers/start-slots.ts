import { type Clock, Slots } from "../../ground/base/index.ts";

/**
 * Pods start a few at a time, so that in a burst the first are ready early instead of all late. A start that takes
 * much longer than usual stops counting: a stuck pod never keeps the others waiting.
 */
export class StartSlots {
  readonly #clock: Clock;
  readonly #slots: Slots<undefined>;

  constructor(clock: Clock, slots: number) {
    this.#clock = clock;
    this.#slots = new Slots(slots, { next: ([first]) => first });
  }

  get isTaken(): boolean {
    return this.#slots.held > 0;
  }

  /** More pods are to start than can at once. */
  get isCrowded(): boolean {
    return this.#slots.waiting > 0;
  }

  async run<Result>(start: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const free = await this.#slots.take(undefined, signal);
    const overdue = this.#clock.after(patienceMs, free);
    try {
      return await start();
    } finally {
      overdue.cancel();
      free();
    }
  }
}

const patienceMs = 2_000;

/** More at once would only make each of them slower: starting is work of the machine's cores. */
export function startSlotsFor(cpus: number): number {
  return Math.max(2, cpus * 2);
}
