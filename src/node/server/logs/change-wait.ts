import { type FSWatcher, watch } from "node:fs";
import { type Clock, Pause } from "../../../ground/base/index.ts";

const denseGapMs = 5;
const denseAfter = 20;
const densePauseMs = 4;
const calmAfter = 25;

/**
 * Waits for a directory to change. While changes are rare, the kernel tells of each; when they come by the hundred a
 * second, being told of each would cost more than looking every few milliseconds, so then we look.
 */
export class ChangeWait implements Disposable {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #pause: Pause;
  #watcher: FSWatcher | undefined;
  #changed = false;
  /** Waits in a row that ended almost at once (watching), or in vain (looking). */
  #row = 0;
  #mode: "watching" | "looking" = "watching";

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
    this.#pause = new Pause(clock);
    this.#watch();
  }

  /** Ends the present wait, or the next one at once. */
  notify(): void {
    this.#changed = true;
    this.#pause.cutShort();
  }

  /** Resolves on a change since the last wait, after `maxMs`, or rejects when aborted. `found`: the last look found something. */
  async wait(found: boolean, maxMs: number, signal: AbortSignal): Promise<void> {
    if (this.#mode === "looking") {
      this.#row = found ? 0 : this.#row + 1;
      if (this.#row < calmAfter) return await this.#pause.wait(densePauseMs, signal);
      this.#watch();
      // Something may have changed while nobody watched: look once more before waiting.
      return;
    }
    const startedAt = this.#clock.monotonic();
    if (!this.#changed) await this.#pause.wait(maxMs, signal);
    this.#changed = false;
    const wasQuick = this.#clock.monotonic() - startedAt < denseGapMs;
    this.#row = wasQuick ? this.#row + 1 : 0;
    if (this.#row >= denseAfter) this.#look();
  }

  #watch(): void {
    this.#mode = "watching";
    this.#row = 0;
    try {
      this.#watcher = watch(this.#directory, { persistent: false }, () => this.notify());
      // Watches may run out or the directory go; the longest wait then makes up for it.
      this.#watcher.on("error", () => this.#unwatch());
    } catch {
      this.#unwatch();
    }
  }

  #look(): void {
    this.#mode = "looking";
    this.#row = 0;
    this.#unwatch();
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  [Symbol.dispose](): void {
    this.#unwatch();
  }
}
