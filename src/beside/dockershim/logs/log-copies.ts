import {
  type Clock,
  Limiter,
  LinkedSignal,
  type Logger,
  messageOf,
  TaskScope,
  unlessAborted,
  withDeadline,
} from "../../../ground/base/index.ts";
import { LogCopy } from "./log-copy.ts";

export interface LogPaths {
  /** Docker's file. */
  readonly source: string;
  /** CRI's file. */
  readonly target: string;
}

/** Threads that copies may hold together; the rest of them is for everybody else. */
const turnsAtOnce = 2;
/** How long an answer about an ended container waits for the end of its log. */
const endWithinMs = 1_000;

/** The logs that are being carried over, by container. */
export class LogCopies implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #turns = new Limiter(turnsAtOnce);
  readonly #scope = new TaskScope();
  readonly #copies = new Map<string, { readonly copy: LogCopy; readonly ending: LinkedSignal }>();

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Carries over the log of a container that runs or has run, unless that is being done. */
  ensure(id: string, { source, target }: LogPaths): LogCopy {
    const running = this.#copies.get(id);
    if (running !== undefined) return running.copy;
    const copy = new LogCopy(source, target, { clock: this.#clock, log: this.#log, turns: this.#turns });
    const ending = new LinkedSignal(this.#scope.signal);
    this.#copies.set(id, { copy, ending });
    this.#scope.spawn(`log of ${id}`, async () => {
      try {
        await copy.run(ending.signal);
      } catch (error) {
        if (ending.signal.aborted) return;
        // One log that can't be written is no reason to lose the others.
        this.#log.error("lost the log of a container", { container: id, error: messageOf(error) });
      } finally {
        ending[Symbol.dispose]();
        if (this.#copies.get(id)?.copy === copy) this.#copies.delete(id);
      }
    });
    return copy;
  }

  /** The container has ended; resolves when its log is whole, but does not wait for long. */
  async finish(id: string, signal: AbortSignal): Promise<void> {
    const copy = this.#copies.get(id)?.copy;
    if (copy === undefined) return;
    copy.finish();
    const late = new Error("the log takes longer");
    await withDeadline(
      this.#clock,
      endWithinMs,
      () => late,
      signal,
      (bounded) => unlessAborted(copy.done, bounded),
    ).catch((error: unknown) => {
      if (error !== late) throw error;
    });
  }

  /** The container is gone: what could not be written by now never will, and its files must not take up the disk. */
  drop(id: string): void {
    this.#copies.get(id)?.ending.abort(new DOMException("the container is gone", "AbortError"));
  }

  /** False when nothing is being copied. */
  async reopen(id: string, signal: AbortSignal): Promise<boolean> {
    const copy = this.#copies.get(id)?.copy;
    await copy?.reopen(signal);
    return copy !== undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.stop();
  }
}
