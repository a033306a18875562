import { type Outcome, outcomeOf } from "./outcome.ts";
import { onAbort } from "./signals.ts";

/**
 * Runs one piece of work for everybody who asks for the same key at the same time. Who aborts leaves at once and the
 * work goes on for the others; the last one to leave stops it and waits until it has ended.
 */
export class SharedWork<Key, Result> {
  readonly #running = new Map<Key, Run<Result>>();

  async join(key: Key, work: (signal: AbortSignal) => Promise<Result>, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted();
    const run = this.#running.get(key) ?? this.#start(key, work);
    run.waiters++;
    let leave: (left: "left" | Promise<"left">) => void = () => {};
    const left = new Promise<"left">((resolve) => {
      leave = resolve;
    });
    // Synchronous, so that whoever asks next never joins work that is being torn down.
    using _ = onAbort(signal, () => {
      run.waiters--;
      if (run.waiters > 0) return leave("left");
      this.#forget(key, run);
      run.controller.abort(signal.reason);
      leave(run.ended.then(() => "left"));
    });
    const outcome = await Promise.race([run.ended, left]);
    if (signal.aborted || outcome === "left") throw signal.reason;
    run.waiters--;
    if (outcome.type === "failed") throw outcome.error;
    return outcome.result;
  }

  #start(key: Key, work: (signal: AbortSignal) => Promise<Result>): Run<Result> {
    const controller = new AbortController();
    const run: Run<Result> = {
      controller,
      waiters: 0,
      ended: outcomeOf(work, controller.signal).then((outcome) => {
        this.#forget(key, run);
        return outcome;
      }),
    };
    this.#running.set(key, run);
    return run;
  }

  #forget(key: Key, run: Run<Result>): void {
    if (this.#running.get(key) === run) this.#running.delete(key);
  }
}

interface Run<Result> {
  readonly controller: AbortController;
  waiters: number;
  /** Never rejects: a failure is an outcome, so that nobody has to be listening. */
  readonly ended: Promise<Outcome<Result>>;
}
