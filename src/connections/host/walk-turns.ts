import { type Clock, type Timer, waitFor } from "../../ground/base/index.ts";

/** What a walk through a tree of files is given: it calls `turn` before each of its steps. */
export interface WalkTurn {
  readonly signal: AbortSignal;
  /** Resolves at once, or when others have had their turn. */
  turn(): Promise<void>;
}

// Two keep the disk busy while one waits for it; more would only take Node's few threads from everybody else.
const walksAtOnce = 2;
// Short enough that a pod with ten files does not notice the one with ten million.
const turnMs = 250;
// One step is a few hundred files. A walk that has not taken one for so long hangs on something, and is left to it.
const stuckMs = 10_000;

interface Walker {
  state: "waiting" | "active" | "lost";
  since: number;
  admit: () => void;
  timer: Timer | undefined;
}

/** Walks through trees of files take turns, so that none of them keeps the others waiting however large its tree is. */
export class WalkTurns {
  readonly #clock: Clock;
  readonly #waiting = new Set<Walker>();
  #active = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async run<Result>(walk: (turn: WalkTurn) => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const walker: Walker = { state: "waiting", since: 0, admit: () => {}, timer: undefined };
    await this.#acquire(walker, signal);
    try {
      return await walk({ signal, turn: () => this.#turn(walker, signal) });
    } finally {
      this.#release(walker);
    }
  }

  async #turn(walker: Walker, signal: AbortSignal): Promise<void> {
    if (walker.state === "active") {
      const now = this.#clock.monotonic();
      if (this.#waiting.size === 0 || now - walker.since < turnMs) {
        this.#watch(walker);
        return;
      }
      this.#release(walker);
    }
    await this.#acquire(walker, signal);
  }

  async #acquire(walker: Walker, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#active < walksAtOnce) {
      this.#activate(walker);
      return;
    }
    walker.state = "waiting";
    await waitFor(signal, (done) => {
      walker.admit = done;
      this.#waiting.add(walker);
      return () => this.#waiting.delete(walker);
    });
  }

  #activate(walker: Walker): void {
    this.#active++;
    walker.state = "active";
    walker.since = this.#clock.monotonic();
    this.#watch(walker);
  }

  #watch(walker: Walker): void {
    walker.timer?.cancel();
    walker.timer = this.#clock.after(stuckMs, () => {
      this.#release(walker);
      walker.state = "lost";
    });
  }

  #release(walker: Walker): void {
    walker.timer?.cancel();
    if (walker.state !== "active") return;
    walker.state = "waiting";
    this.#active--;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#activate(next);
    next.admit();
  }
}
