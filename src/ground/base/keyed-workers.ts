import type { TaskScope } from "./task-scope.ts";

/** One serial worker per key; wakes that arrive during a run collapse into one more run. */
export class KeyedWorkers<Key> {
  readonly #active = new Map<Key, "running" | "woken">();
  readonly #scope: TaskScope;
  readonly #sync: (key: Key, signal: AbortSignal) => Promise<void>;

  constructor(scope: TaskScope, sync: (key: Key, signal: AbortSignal) => Promise<void>) {
    this.#scope = scope;
    this.#sync = sync;
  }

  /** Number of keys at work now. */
  get size(): number {
    return this.#active.size;
  }

  wake(key: Key): void {
    if (this.#active.has(key)) this.#active.set(key, "woken");
    else {
      this.#active.set(key, "running");
      this.#scope.spawn(`sync ${String(key)}`, (signal) => this.#drain(key, signal));
    }
  }

  async #drain(key: Key, signal: AbortSignal): Promise<void> {
    try {
      do {
        this.#active.set(key, "running");
        await this.#sync(key, signal);
      } while (this.#active.get(key) === "woken" && !signal.aborted);
    } finally {
      this.#active.delete(key);
    }
  }
}
