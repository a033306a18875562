import type { Clock } from "./clock.ts";
import { waitFor } from "./signals.ts";

/** Who is admitted next; told of everything that happens, so that it can count. */
export interface SlotPolicy<Who> {
  /** One of those who wait, in the order they came; undefined while none of them may have a slot. */
  next<Waiter extends SlotWaiter<Who>>(waiting: ReadonlySet<Waiter>): Waiter | undefined;
  taken?(who: Who): void;
  freed?(who: Who): void;
  /** Nothing is held any more, and nobody waits. */
  idle?(): void;
  /** Whoever has waited for so long is admitted beyond the limit, if `deserves` agrees. */
  readonly patience?: { readonly clock: Clock; readonly ms: number; readonly deserves: (who: Who) => boolean };
}

export interface SlotWaiter<Who> {
  readonly who: Who;
}

interface Waiter<Who> extends SlotWaiter<Who> {
  readonly admit: () => void;
}

/** At most `limit` holders at once; a policy says who of those that wait is next. */
export class Slots<Who> {
  readonly #limit: number;
  readonly #policy: SlotPolicy<Who>;
  readonly #waiting = new Set<Waiter<Who>>();
  #held = 0;

  constructor(limit: number, policy: SlotPolicy<Who>) {
    this.#limit = limit;
    this.#policy = policy;
  }

  get held(): number {
    return this.#held;
  }

  async run<Result>(who: Who, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const free = await this.take(who, signal);
    try {
      return await work();
    } finally {
      free();
    }
  }

  /** Waits for a slot; the answer gives it back, once. */
  async take(who: Who, signal: AbortSignal): Promise<() => void> {
    await waitFor(signal, (admit) => {
      const waiter: Waiter<Who> = { who, admit };
      const { patience } = this.#policy;
      const impatience = patience?.clock.after(patience.ms, () => {
        if (patience.deserves(who)) this.#serve(waiter);
      });
      this.#waiting.add(waiter);
      this.#admit();
      return () => {
        impatience?.cancel();
        this.#waiting.delete(waiter);
      };
    });
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#free(who);
    };
  }

  #admit(): void {
    while (this.#held < this.#limit) {
      const next = this.#policy.next(this.#waiting);
      if (next === undefined) return;
      this.#serve(next);
    }
  }

  #serve(waiter: Waiter<Who>): void {
    // Before it is told, which may be before it can leave by itself.
    this.#waiting.delete(waiter);
    this.#held++;
    this.#policy.taken?.(waiter.who);
    waiter.admit();
  }

  #free(who: Who): void {
    this.#held--;
    this.#policy.freed?.(who);
    this.#admit();
    if (this.#held === 0) this.#policy.idle?.();
  }
}
