import { type FSWatcher, watch } from "node:fs";
import { stat } from "node:fs/promises";
import type { RuntimeService } from "../../connections/cri/index.ts";
import { type Clock, hasCode, isAbort, type Logger, mapAtMost, Pause } from "../../ground/base/index.ts";
import { rotateLog } from "./log-rotation-files.ts";

export interface LogRotationSettings {
  /** containerLogMaxSize; negative: never rotate. */
  readonly maxBytes: number;
  /** containerLogMaxFiles. */
  readonly maxFiles: number;
  /** containerLogMaxWorkers. */
  readonly workers: number;
  /** containerLogMonitorInterval. */
  readonly intervalMs: number;
}

export interface LoggedContainer {
  readonly id: string;
  readonly logPath: string;
}

export interface LogRotationPorts {
  readonly runtime: Pick<RuntimeService, "reopenContainerLog">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Every container that runs now. */
  readonly running: () => Iterable<LoggedContainer>;
}

/**
 * Keeps the logs of running containers within their limits. The log of a container that writes is looked at once per
 * interval; of one that is silent, the kernel tells when it speaks again, and until then nobody looks.
 */
export class LogRotation {
  #settings: LogRotationSettings;
  readonly #ports: LogRotationPorts;
  readonly #logs = new Map<string, WatchedLog>();
  readonly #pause: Pause;
  #changed = false;

  constructor(settings: LogRotationSettings, ports: LogRotationPorts) {
    this.#settings = settings;
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** Other limits count from the next look on, also for logs that say nothing any more: they may be too long by now. */
  configure(settings: LogRotationSettings): void {
    this.#settings = settings;
    for (const log of this.#logs.values()) {
      log.watcher?.close();
      log.watcher = undefined;
    }
    this.#pause.cutShort();
  }

  /** Containers may have come or gone. */
  noteChange(): void {
    this.#changed = true;
    if (!this.#isWatchful) this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        this.#takeIn();
        const isWatchful = this.#isWatchful;
        const { maxBytes, intervalMs } = this.#settings;
        await this.#pause.wait(isWatchful && maxBytes >= 0 ? intervalMs : Number.POSITIVE_INFINITY, signal);
        // Whoever ends the silence starts an interval.
        if (isWatchful && this.#settings.maxBytes >= 0) await this.#lookAtActive(signal);
      }
    } finally {
      for (const log of this.#logs.values()) log.watcher?.close();
    }
  }

  /** Some log is written to, so that the next look is due in an interval. */
  get #isWatchful(): boolean {
    for (const { watcher } of this.#logs.values()) if (watcher === undefined) return true;
    return false;
  }

  #takeIn(): void {
    if (!this.#changed && this.#logs.size > 0) return;
    this.#changed = false;
    const gone = new Set(this.#logs.keys());
    for (const { id, logPath } of this.#ports.running()) {
      gone.delete(id);
      if (logPath === "" || this.#logs.has(id)) continue;
      this.#logs.set(id, { id, path: logPath, size: -1, watcher: undefined });
    }
    for (const id of gone) {
      this.#logs.get(id)?.watcher?.close();
      this.#logs.delete(id);
    }
  }

  async #lookAtActive(signal: AbortSignal): Promise<void> {
    this.#takeIn();
    const active = [...this.#logs.values()].filter(({ watcher }) => watcher === undefined);
    await mapAtMost(Math.max(1, this.#settings.workers), active, (log) => this.#look(log, signal));
  }

  async #look(log: WatchedLog, signal: AbortSignal): Promise<void> {
    try {
      const size = await this.#sizeOf(log, signal);
      const { maxBytes, maxFiles } = this.#settings;
      if (size >= maxBytes) {
        const { clock, log: logger } = this.#ports;
        const reopen = (): Promise<void> => this.#reopen(log, signal);
        await rotateLog({ path: log.path, maxFiles, now: new Date(clock.now()), reopen }, signal);
        logger.debug(2, "Rotated the log of a container", { id: log.id, path: log.path, bytes: size });
        log.size = -1;
      } else if (size === log.size) await this.#wakeOnChange(log);
      else log.size = size;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      // A container that has just ended is none of our business any more.
      if (![...this.#ports.running()].some(({ id }) => id === log.id)) return;
      this.#ports.log.error("Failed to rotate log for container", error, { containerID: log.id, path: log.path });
    }
  }

  /** A missing file is what an interrupted rotation leaves: the runtime is asked to make it anew. */
  async #sizeOf(log: WatchedLog, signal: AbortSignal): Promise<number> {
    try {
      return (await stat(log.path)).size;
    } catch (error) {
      if (!hasCode(error, "ENOENT")) throw error;
      await this.#reopen(log, signal);
      return (await stat(log.path)).size;
    }
  }

  async #reopen(log: WatchedLog, signal: AbortSignal): Promise<void> {
    await this.#ports.runtime.reopenContainerLog({ containerId: log.id }, { signal });
  }

  async #wakeOnChange(log: WatchedLog): Promise<void> {
    const wake = (): void => {
      const wasWatchful = this.#isWatchful;
      log.watcher?.close();
      log.watcher = undefined;
      if (!wasWatchful) this.#pause.cutShort();
    };
    try {
      log.watcher = watch(log.path, { persistent: false }, wake).on("error", wake);
      // What was written before the kernel began to watch went unseen.
      if ((await stat(log.path)).size !== log.size) wake();
    } catch {
      // No watch to be had, or no file: it is looked at again after an interval.
      wake();
    }
  }
}

interface WatchedLog {
  readonly id: string;
  readonly path: string;
  /** At the last look. */
  size: number;
  /** Set while the log is silent. */
  watcher: FSWatcher | undefined;
}
