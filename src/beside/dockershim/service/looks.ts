import { type Clock, unlessAborted, withDeadline } from "../../../ground/base/index.ts";
import { type Engine, EngineError, type InspectedContainer, isAbsent } from "../engine/index.ts";

type Look =
  | { readonly type: "found"; readonly container: InspectedContainer }
  | { readonly type: "gone" }
  /** Docker does not tell: not now, or not at all of one of which it has lost a part. */
  | { readonly type: "busy" };

interface Waiting {
  readonly answer: Promise<Look>;
  isSlow: boolean;
}

/** What an answer about many containers waits for one of them. */
const patienceMs = 1_000;

/**
 * Looks at single containers for answers about many. Docker tells nothing of a container while it is starting it, and a
 * start can hang for as long as a disk or a program of the container's makes it: nobody else's answer waits for that.
 */
export class Looks {
  readonly #engine: Pick<Engine, "inspectContainer">;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #waiting = new Map<string, Waiting>();

  /** `signal`: of the shim; a look outlives whoever asked first. */
  constructor(engine: Pick<Engine, "inspectContainer">, clock: Clock, signal: AbortSignal) {
    this.#engine = engine;
    this.#clock = clock;
    this.#signal = signal;
  }

  /** Waits a moment; where Docker has kept somebody waiting already, not at all. */
  async at(id: string, signal: AbortSignal): Promise<Look> {
    const waiting = this.#waiting.get(id) ?? this.#begin(id);
    if (waiting.isSlow) return { type: "busy" };
    const late = new Error("docker does not tell now");
    try {
      return await withDeadline(
        this.#clock,
        patienceMs,
        () => late,
        signal,
        (bounded) => unlessAborted(waiting.answer, bounded),
      );
    } catch (error) {
      if (error !== late) throw error;
      waiting.isSlow = true;
      return { type: "busy" };
    }
  }

  /** What a look that goes on will find may be out of date: the next one is a new one. */
  forget(id: string): void {
    this.#waiting.delete(id);
  }

  #begin(id: string): Waiting {
    const waiting: Waiting = { answer: this.#inspect(id), isSlow: false };
    this.#waiting.set(id, waiting);
    const over = (): void => {
      if (this.#waiting.get(id) === waiting) this.#waiting.delete(id);
    };
    waiting.answer.then(over, over);
    return waiting;
  }

  async #inspect(id: string): Promise<Look> {
    try {
      return { type: "found", container: await this.#engine.inspectContainer(id, this.#signal) };
    } catch (error) {
      if (isAbsent(error)) return { type: "gone" };
      if (error instanceof EngineError) return { type: "busy" };
      throw error;
    }
  }
}
