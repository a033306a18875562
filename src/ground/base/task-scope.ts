import { setMaxListeners } from "node:events";
import { allEnded } from "./at-most.ts";
import { isAbort } from "./errors.ts";
import { onAbort } from "./signals.ts";

/**
 * Owns background tasks. Leaving the scope (`await using`, or `stop()`) aborts its signal and waits for every task.
 * A task that fails aborts the whole scope with its error; whoever owns the scope sees it in `signal.reason`.
 */
export class TaskScope implements AsyncDisposable {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #link: Disposable;

  /** With a parent signal, the scope stops when the parent does. */
  constructor(parent?: AbortSignal) {
    // A scope has as many tasks as there is work, and each listens; Node would take more than ten for a leak.
    setMaxListeners(0, this.#controller.signal);
    this.#link = onAbort(parent, () => this.#controller.abort(parent?.reason));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Number of tasks that have not ended yet; tests use it to find leaks. */
  get size(): number {
    return this.#running.size;
  }

  spawn(name: string, task: (signal: AbortSignal) => Promise<void>): void {
    const { signal } = this.#controller;
    if (signal.aborted) return;
    const run = (async () => {
      try {
        await task(signal);
      } catch (error) {
        if (isAbort(error, signal)) return;
        this.#controller.abort(new Error(`task "${name}" failed`, { cause: error }));
      }
    })();
    this.#running.add(run);
    void run.finally(() => this.#running.delete(run));
  }

  /** Aborts every task and resolves when all have ended. Safe to call more than once. */
  async stop(): Promise<void> {
    this.#link[Symbol.dispose]();
    this.#controller.abort(new DOMException("scope stopped", "AbortError"));
    while (this.#running.size > 0) await allEnded(this.#running);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
