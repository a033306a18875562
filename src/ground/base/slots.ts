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
  admit: () => void;
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

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Where there is room, the work begins before this returns. */
  async run<Result>(who: Who, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted();
    const waiter = this.#ask(who);
    if (waiter !== undefined) await this.#admission(waiter, signal);
    try {
      return await work();
    } finally {
      this.#free(who);
    }
  }

  /** Waits for a slot; the answer gives it back, once. */
  async take(who: Who, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const waiter = this.#ask(who);
    if (waiter !== undefined) await this.#admission(waiter, signal);
    let isHeld = true;
    return () => {
      if (isHeld) this.#free(who);
      isHeld = false;
    };
  }

  /** Undefined when it was admitted at once. */
  #ask(who: Who): Waiter<Who> | undefined {
    let isAdmitted = false;
    const waiter: Waiter<Who> = {
      who,
      admit: () => {
        isAdmitted = true;
      },
    };
    this.#waiting.add(waiter);
    this.#admit();
    return isAdmitted ? undefined : waiter;
  }

  #admission(waiter: Waiter<Who>, signal: AbortSignal): Promise<void> {
    return waitFor(signal, (done) => {
      waiter.admit = done;
      const { patience } = this.#policy;
      const impatience = patience?.clock.after(patience.ms, () => {
        if (patience.deserves(waiter.who)) this.#serve(waiter);
      });
      return () => {
        impatience?.cancel();
        this.#waiting.delete(waiter);
      };
    });
  }

  #admit(): void {
    while (this.#held < this.#limit) {
      const next = this.#policy.next(this.#waiting);
      if (next === undefined) return;
      this.#serve(next);
    }
  }

  #serve(waiter: Waiter<Who>): void {
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
