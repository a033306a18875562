import { type Clock, formatDuration, Limiter, messageOf } from "../base/index.ts";
import { goQuote } from "../model/index.ts";
import { outputLimitBytes, type ProbeOutcome } from "./outcome.ts";
import type { ExecInContainer, ExecResult } from "./ports.ts";
import type { ProbeTarget } from "./target.ts";

export interface ExecProbeSettings {
  /** Commands that may be starting at once. */
  readonly concurrency: number;
  /** How long a runtime that does not answer is waited for beyond the probe's own timeout. */
  readonly runtimeTimeoutMs: number;
}

/** Starting a command is what costs; after this time it only waits, and another may start. */
const longestTurnMs = 1_000;

/** Runs probe commands, a bounded number at a time: each costs the node a new process in the container. */
export class ExecProber {
  readonly #exec: ExecInContainer;
  readonly #clock: Clock;
  readonly #turns: Limiter;
  readonly #runtimeTimeoutMs: number;

  constructor(exec: ExecInContainer, clock: Clock, settings: ExecProbeSettings) {
    this.#exec = exec;
    this.#clock = clock;
    this.#turns = new Limiter(settings.concurrency);
    this.#runtimeTimeoutMs = settings.runtimeTimeoutMs;
  }

  /** Healthy when the command exits with 0. */
  async probe(
    { id, command }: ProbeTarget & { readonly type: "exec" },
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<ProbeOutcome> {
    let result: ExecResult;
    try {
      result = await this.#execInTurn((until) => this.#exec(id, command, timeoutMs, until), timeoutMs, signal);
    } catch (error) {
      signal.throwIfAborted();
      return { type: "error", state: "unknown", message: messageOf(error) };
    }
    if (result.type === "timedOut") {
      const text = `${goQuote(command.join(" "))} timed out after ${formatDuration(timeoutMs)}`;
      return { type: "failure", output: `command timed out: ${text}` };
    }
    if (result.exitCode === 0) return { type: "success" };
    const output = Buffer.concat([result.stdout, result.stderr]).subarray(0, outputLimitBytes);
    return { type: "failure", output: output.toString() };
  }

  async #execInTurn(
    start: (signal: AbortSignal) => Promise<ExecResult>,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<ExecResult> {
    let running: Promise<ExecResult> | undefined;
    await this.#turns.run(async () => {
      running = this.#withDeadline(start, timeoutMs, signal);
      await this.#settledOrAfter(running, longestTurnMs);
    }, signal);
    return running ?? { type: "timedOut" };
  }

  /** Resolves when the work has ended one way or the other, but no later than after `ms`. */
  async #settledOrAfter(work: Promise<unknown>, ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#clock.after(ms, resolve);
      const ended = (): void => {
        timer.cancel();
        resolve();
      };
      work.then(ended, ended);
    });
  }

  /** The runtime enforces the timeout; this one is for a runtime that does not answer at all. */
  #withDeadline(
    start: (signal: AbortSignal) => Promise<ExecResult>,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<ExecResult> {
    return new Promise((resolve, reject) => {
      const cancel = new AbortController();
      const finish = (settle: () => void): void => {
        timer.cancel();
        signal.removeEventListener("abort", onAbort);
        settle();
      };
      const onAbort = (): void => {
        cancel.abort(signal.reason);
        finish(() => reject(signal.reason));
      };
      signal.addEventListener("abort", onAbort, { once: true });
      const timer = this.#clock.after(timeoutMs + this.#runtimeTimeoutMs, () => {
        cancel.abort(new DOMException("the runtime did not answer", "TimeoutError"));
        finish(() => resolve({ type: "timedOut" }));
      });
      start(cancel.signal).then(
        (result) => finish(() => resolve(result)),
        (error: unknown) => finish(() => reject(error)),
      );
    });
  }
}
