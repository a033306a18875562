import { type Clock, hasCode, type Limiter, type Logger, messageOf, Pause } from "../../../ground/base/index.ts";
import { CriLog } from "./cri-log.ts";
import { EngineLog } from "./engine-log.ts";
import { criLine } from "./log-form.ts";

export interface CopyPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Turns of all copies together: each holds a thread while it reads or writes. */
  readonly turns: Limiter;
}

/** Lines that come one by one are written together. */
const gatherMs = 5;
/** Where the kernel tells of changes, this is for what it may have missed; where it does not, we look. */
const lookAnywayMs = 60_000;
const lookAgainMs = 1_000;
const retryMs = 1_000;

/** Carries one container's log from Docker's file to CRI's, until it has ended and all is there. */
export class LogCopy {
  readonly #source: EngineLog;
  readonly #target: CriLog;
  readonly #ports: CopyPorts;
  readonly #pause: Pause;
  readonly #done: Promise<void>;
  #settle: () => void = () => {};
  #wasWoken = false;
  #isLast = false;

  constructor(sourcePath: string, targetPath: string, ports: CopyPorts) {
    this.#source = new EngineLog(sourcePath);
    this.#target = new CriLog(targetPath);
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
    this.#done = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Resolves when the container has ended and its log is whole, or nobody wants it any more. */
  get done(): Promise<void> {
    return this.#done;
  }

  /** The container writes no more: copy what is left, then end. */
  finish(): void {
    this.#isLast = true;
    this.#stir();
  }

  async reopen(signal: AbortSignal): Promise<void> {
    await this.#ports.turns.run(() => this.#target.reopen(), signal);
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await using _source = this.#source;
      await using _target = this.#target;
      await this.#begin(signal);
      for (;;) {
        using watching = this.#source.onChange(() => this.#stir());
        const wasLast = this.#isLast;
        await this.#copyAll(signal);
        if (wasLast) return;
        await this.#untilMore(watching === undefined ? lookAgainMs : lookAnywayMs, signal);
      }
    } finally {
      this.#settle();
    }
  }

  async #begin(signal: AbortSignal): Promise<void> {
    await this.#untilItWorks("open the log", signal, async () => {
      const last = await this.#target.open();
      await this.#source.seek(last);
    });
  }

  async #copyAll(signal: AbortSignal): Promise<void> {
    for (;;) {
      const entries = await this.#untilItWorks("read the log", signal, () => this.#source.read());
      if (entries === undefined) return;
      if (entries.length === 0) continue;
      const text = entries.map(criLine).join("");
      await this.#untilItWorks("write the log", signal, () => this.#target.write(text));
    }
  }

  /** A full disk or a directory that is not there yet must not end a log. */
  async #untilItWorks<Result>(what: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#ports.turns.run(work, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!hasCode(error, "ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "EIO", "EROFS")) throw error;
        if (tries === 1) this.#ports.log.warn(`cannot ${what}, trying again`, { error: messageOf(error) });
        await this.#ports.clock.sleep(retryMs, signal);
      }
    }
  }

  async #untilMore(patienceMs: number, signal: AbortSignal): Promise<void> {
    if (!this.#wasWoken && !this.#isLast) await this.#pause.wait(patienceMs, signal);
    this.#wasWoken = false;
    if (!this.#isLast) await this.#ports.clock.sleep(gatherMs, signal);
  }

  #stir(): void {
    this.#wasWoken = true;
    this.#pause.cutShort();
  }
}
