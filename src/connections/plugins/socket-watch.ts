import { type FSWatcher, watch } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { isMissing } from "../../ground/base/index.ts";

export interface FoundSocket {
  /** Another one when the socket was made anew. */
  readonly identity: string;
}

// The kernel tells of changes; this heals a notice that got lost.
const checkMs = 60_000;
const missingMs = 1_000;

/** The sockets below a directory, and when to look again. Names that begin with a dot are not for us. */
export class SocketWatch {
  readonly #directory: string;
  readonly #onChange: () => void;
  readonly #watchers = new Map<string, FSWatcher>();
  #last: ReadonlyMap<string, FoundSocket> = new Map();
  #hasNews = false;

  constructor(directory: string, onChange: () => void) {
    this.#directory = directory;
    this.#onChange = onChange;
  }

  /** Something changed since the last look began. */
  get hasNews(): boolean {
    return this.#hasNews;
  }

  /** What can't be looked at now, for want of descriptors for instance, is as it was: nobody has left because of that. */
  async look(): Promise<{ readonly found: ReadonlyMap<string, FoundSocket>; readonly nextLookMs: number }> {
    this.#hasNews = false;
    const found = new Map<string, FoundSocket>();
    const directories = new Set<string>();
    await this.#lookInto(this.#directory, found, directories);
    this.#last = found;
    for (const [path, watcher] of this.#watchers) {
      if (directories.has(path)) continue;
      watcher.close();
      this.#watchers.delete(path);
    }
    return { found, nextLookMs: this.#watchers.has(this.#directory) ? checkMs : missingMs };
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  async #lookInto(directory: string, found: Map<string, FoundSocket>, directories: Set<string>): Promise<void> {
    directories.add(directory);
    // The watch must stand before the look: what changes in between is then noticed.
    this.#watch(directory);
    let entries: Awaited<ReturnType<typeof list>>;
    try {
      entries = await list(directory);
    } catch (error) {
      if (isMissing(error)) directories.delete(directory);
      else this.#keepBelow(directory, found, directories);
      return;
    }
    for (const entry of entries) {
      if (entry.name.startsWith(".")) continue;
      const path = join(directory, entry.name);
      if (entry.isDirectory()) await this.#lookInto(path, found, directories);
      else if (entry.isSocket()) {
        const identity = await this.#identityOf(path);
        if (identity !== undefined) found.set(path, { identity });
      }
    }
  }

  #keepBelow(directory: string, found: Map<string, FoundSocket>, directories: Set<string>): void {
    const isBelow = (path: string): boolean => path.startsWith(`${directory}/`);
    for (const [path, socket] of this.#last) if (isBelow(path)) found.set(path, socket);
    for (const path of this.#watchers.keys()) if (isBelow(path)) directories.add(path);
  }

  async #identityOf(path: string): Promise<string | undefined> {
    try {
      const { ino, ctimeNs } = await lstat(path, { bigint: true });
      return `${ino}:${ctimeNs}`;
    } catch (error) {
      return isMissing(error) ? undefined : this.#last.get(path)?.identity;
    }
  }

  #watch(directory: string): void {
    if (this.#watchers.has(directory)) return;
    const changed = (): void => {
      this.#hasNews = true;
      this.#onChange();
    };
    try {
      const watcher = watch(directory, { persistent: true }, changed);
      watcher.on("error", () => {
        watcher.close();
        if (this.#watchers.get(directory) === watcher) this.#watchers.delete(directory);
        changed();
      });
      this.#watchers.set(directory, watcher);
    } catch {
      // Not there (yet); the caller looks again soon.
    }
  }
}

function list(directory: string) {
  return readdir(directory, { withFileTypes: true });
}
