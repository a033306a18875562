import { dirname } from "node:path";
import { type Clock, hasCode, type Logger, messageOf, syncDirectory, type TaskScope } from "../../ground/base/index.ts";

/**
 * How long what was written may be in the kernel's memory alone. Short beside the kernel's own half minute, and long
 * enough for the changes of a pod's start, and those of many pods that start together, to be synced once.
 */
const syncAfterMs = 2_000;

/**
 * Forces files to the disk a little after they were written. Nobody waits for it, and one file is synced after the
 * other: a disk that is slow or hangs takes one of the few threads that all file work shares, not all of them.
 */
export class DelayedFsync {
  readonly #options: DelayedFsyncOptions;
  readonly #waiting = new Set<string>();
  #isUnderWay = false;

  constructor(options: DelayedFsyncOptions) {
    this.#options = options;
  }

  /** The file was written or replaced. */
  changed(path: string): void {
    this.#waiting.add(path);
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    this.#options.scope.spawn("sync what was written", async (signal) => {
      try {
        while (this.#waiting.size > 0) {
          await this.#options.clock.sleep(syncAfterMs, signal);
          await this.#syncAll(signal);
        }
      } finally {
        this.#isUnderWay = false;
      }
    });
  }

  async #syncAll(signal: AbortSignal): Promise<void> {
    const files = [...this.#waiting];
    this.#waiting.clear();
    // The file's name is in its directory, and that of the directory, which may be as new, in the one above.
    const directories = files.map((path) => dirname(path));
    const above = directories.map((path) => dirname(path));
    for (const path of new Set([...files, ...directories, ...above])) await this.#try(path, signal);
  }

  async #try(path: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    try {
      // A file is opened and synced like a directory.
      await (this.#options.sync ?? syncDirectory)(path);
    } catch (error) {
      // Removed with its pod.
      if (hasCode(error, "ENOENT")) return;
      this.#options.log.warn("Could not sync a file to disk; a power loss may undo its last change", {
        path,
        error: messageOf(error),
      });
    }
  }
}

export interface DelayedFsyncOptions {
  readonly clock: Clock;
  readonly scope: TaskScope;
  readonly log: Logger;
  /** For tests. */
  readonly sync?: (path: string) => Promise<void>;
}
