import { setMaxListeners } from "node:events";
import { isAbort } from "./errors.ts";

/**
 * Owns background tasks. Leaving the scope (`await using`, or `stop()`) aborts its signal and waits for every task.
 * A task that fails aborts the whole scope with its error; whoever owns the scope sees it in `signal.reason`.
 */
export class TaskScope implements AsyncDisposable {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #parent: AbortSignal | undefined;
  readonly #onParentAbort = (): void => this.#controller.abort(this.#parent?.reason);

  /** With a parent signal, the scope stops when the parent does. */
  constructor(parent?: AbortSignal) {
    this.#parent = parent;
    // A scope has as many tasks as there is work, and each listens; Node would take more than ten for a leak.
    setMaxListeners(0, this.#controller.signal);
    if (parent?.aborted) this.#onParentAbort();
    else parent?.addEventListener("abort", this.#onParentAbort, { once: true });
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
    this.#parent?.removeEventListener("abort", this.#onParentAbort);
    this.#controller.abort(new DOMException("scope stopped", "AbortError"));
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
