import { type FSWatcher, watch } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock, isAbort, type Logger, messageOf, Pause } from "../../ground/base/index.ts";
import type { ReadVersion } from "./version.ts";

export interface WatchedFilesPorts {
  readonly read: () => Promise<ReadVersion>;
  readonly propose: (read: ReadVersion) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Whoever writes a file in place leaves it half written for a moment: it counts once it has stayed the same so long. */
const settledMs = 1_000;
/** In case the kernel's notices got lost, or do not exist (network mounts). */
const checkEveryMs = 60_000;
/** Others may write beside the file all the time, and each notice means that everything is read. */
const restMs = 500;
const mostDirectories = 64;

/** Follows the file of --config and the drop-ins of --config-dir. */
export class WatchedFiles {
  readonly #places: { readonly configFile: string; readonly configDir: string };
  readonly #ports: WatchedFilesPorts;
  readonly #pause: Pause;
  readonly #watchers = new Set<FSWatcher>();
  #isTold = false;

  /** Absolute paths; empty where there is none. */
  constructor(places: { readonly configFile: string; readonly configDir: string }, ports: WatchedFilesPorts) {
    this.#places = places;
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, read, propose, log } = this.#ports;
    let proposed: string | undefined;
    try {
      while (!signal.aborted) {
        // The watches stand before anything is read: what changes in between is then noticed.
        await this.#watch();
        this.#isTold = false;
        // Files and what is in them are somebody else's: whatever comes of them, the configuration in use stays.
        try {
          const found = await read();
          if (found.version.id !== proposed) {
            await clock.sleep(settledMs, signal);
            if (found.version.id !== (await read()).version.id) continue;
            await propose(found);
            proposed = found.version.id;
          }
        } catch (error) {
          if (isAbort(error, signal)) throw error;
          log.error("The configuration files can't be used", error);
        }
        if (!this.#isTold) await this.#pause.wait(checkEveryMs, signal);
        if (this.#isTold) await clock.sleep(restMs, signal);
      }
    } finally {
      this.#closeAll();
    }
  }

  async #watch(): Promise<void> {
    const wanted = new Set<string>();
    for (const directory of await this.#directories()) {
      if (wanted.size === mostDirectories) break;
      wanted.add(directory);
    }
    // A watch stays with its directory when another one takes its name, and nothing tells the two apart for sure.
    this.#closeAll();
    for (const directory of wanted) this.#watchDirectory(directory);
  }

  #closeAll(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers.clear();
  }

  #watchDirectory(directory: string): void {
    const tell = (): void => {
      this.#isTold = true;
      this.#pause.cutShort();
    };
    try {
      const watcher = watch(directory, { persistent: true }, tell);
      watcher.on("error", () => {
        watcher.close();
        this.#watchers.delete(watcher);
        tell();
      });
      this.#watchers.add(watcher);
    } catch (error) {
      this.#ports.log.debug(1, "Changes of a directory are seen with the next check", {
        directory,
        err: messageOf(error),
      });
    }
  }

  /** Where names may change: beside the file, where a link of its leads, and below the directory of drop-ins. */
  async #directories(): Promise<readonly string[]> {
    const { configFile, configDir } = this.#places;
    const found: string[] = [];
    if (configFile !== "") {
      found.push(dirname(configFile));
      const real = await realpath(configFile).catch(() => configFile);
      found.push(dirname(real));
    }
    if (configDir !== "") {
      found.push(dirname(configDir));
      await this.#below(configDir, found);
    }
    return found;
  }

  async #below(directory: string, found: string[]): Promise<void> {
    if (found.length > mostDirectories) return;
    const isDirectory = await stat(directory).then(
      (stats) => stats.isDirectory(),
      () => false,
    );
    if (!isDirectory) return;
    found.push(directory);
    for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
      if (entry.isDirectory()) await this.#below(join(directory, entry.name), found);
    }
  }
}
