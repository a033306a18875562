import { type FSWatcher, watch } from "node:fs";
import { stat } from "node:fs/promises";
import { RemovedNames } from "../../connections/host/index.ts";

/** Tells of changes in one directory as the kernel reports them (inotify). */
export class DirectoryWatch {
  readonly #onChange: (name: string) => void;
  #watcher: FSWatcher | undefined;
  #watched: string | undefined;
  #removed: RemovedNames | undefined;

  constructor(onChange: (name: string) => void) {
    this.#onChange = onChange;
  }

  /**
   * Makes sure that the directory now found at `path` is being watched, also when it took the place of another.
   * Throws when it cannot be watched; calling again tries again.
   */
  async ensure(path: string): Promise<"already watched" | "newly watched"> {
    const { dev, ino } = await stat(path, { bigint: true }).catch((error: unknown) => {
      this.close();
      throw error;
    });
    const identity = `${dev}:${ino}`;
    if (this.#watched === identity) return "already watched";
    this.close();
    const watcher = watch(path, { persistent: true }, (_, name) => this.#onChange(name ?? ""));
    // The directory may go away under the watch; the next call then finds out what is there now.
    watcher.on("error", () => {
      if (this.#watcher === watcher) this.close();
      this.#onChange("");
    });
    this.#watcher = watcher;
    this.#watched = identity;
    this.#removed = await RemovedNames.of(path);
    return "newly watched";
  }

  /** Names that went since the last call, also those that are there again. */
  removed(): ReadonlySet<string> {
    return this.#removed?.take() ?? new Set();
  }

  close(): void {
    this.#removed?.[Symbol.dispose]();
    this.#removed = undefined;
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#watched = undefined;
  }
}
