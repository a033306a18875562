import { type Clock, FairLimiter, formatDuration, goQuote, messageOf, waitFor } from "../../ground/base/index.ts";
import type { PodUid } from "../../ground/model/index.ts";
import { clip, outputLimitBytes, type ProbeOutcome } from "./outcome.ts";
import type { ExecInContainer, ExecResult } from "./ports.ts";
import type { ProbeTarget } from "./target.ts";

export interface ExecProbeSettings {
  /** Commands that may be starting at once, as long as nobody has to wait for long. */
  readonly concurrency: number;
  /** How long a runtime that does not answer is waited for beyond the probe's own timeout. */
  readonly runtimeTimeoutMs: number;
}

/** Starting a command is what costs; after this time it only waits, and another may start. */
const longestTurnMs = 1_000;
/** A pod whose commands hang keeps this part of the turns, so that others need not even be patient. */
const sharePerPod = 1 / 4;
/** However many pods have commands that hang, a probe of another is late by no more than the shortest period. */
const patienceMs = 1_000;

/**
 * Runs probe commands, a bounded number at a time: each costs the node a new process in the container. Pods take turns,
 * so that none waits for the many or slow commands of another.
 */
export class ExecProber {
  readonly #exec: ExecInContainer;
  readonly #clock: Clock;
  readonly #turns: FairLimiter<PodUid>;
  readonly #runtimeTimeoutMs: number;

  constructor(exec: ExecInContainer, clock: Clock, settings: ExecProbeSettings) {
    this.#exec = exec;
    this.#clock = clock;
    const { concurrency: limit } = settings;
    this.#turns = new FairLimiter(clock, { limit, share: Math.ceil(limit * sharePerPod), patienceMs });
    this.#runtimeTimeoutMs = settings.runtimeTimeoutMs;
  }

  /** Healthy when the command exits with 0. */
  async probe(
    { pod, id, command }: ProbeTarget & { readonly type: "exec" },
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<ProbeOutcome> {
    let result: ExecResult;
    try {
      result = await this.#execInTurn(pod, (until) => this.#exec(id, command, timeoutMs, until), timeoutMs, signal);
    } catch (error) {
      signal.throwIfAborted();
      return { type: "error", state: "unknown", message: messageOf(error) };
    }
    if (result.type === "timedOut") {
      const text = `${goQuote(clip(command.join(" ")))} timed out after ${formatDuration(timeoutMs)}`;
      return { type: "failure", output: `command timed out: ${text}` };
    }
    if (result.exitCode === 0) return { type: "success" };
    // Commands may say 16 MiB; what nobody will see is not even copied.
    const heads = [result.stdout, result.stderr].map((bytes) => bytes.subarray(0, outputLimitBytes));
    const output = Buffer.concat(heads).subarray(0, outputLimitBytes);
    return { type: "failure", output: output.toString() };
  }

  async #execInTurn(
    pod: PodUid,
    start: (signal: AbortSignal) => Promise<ExecResult>,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<ExecResult> {
    let running: Promise<ExecResult> | undefined;
    const turn = async (): Promise<void> => {
      running = this.#withDeadline(start, timeoutMs, signal);
      await this.#settledOrAfter(running, longestTurnMs);
    };
    await this.#turns.run(pod, turn, signal);
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
    return waitFor<ExecResult>(signal, (done, fail) => {
      const cancel = new AbortController();
      const timer = this.#clock.after(timeoutMs + this.#runtimeTimeoutMs, () => {
        cancel.abort(new DOMException("the runtime did not answer", "TimeoutError"));
        done({ type: "timedOut" });
      });
      start(cancel.signal).then(done, fail);
      return () => {
        timer.cancel();
        if (signal.aborted) cancel.abort(signal.reason);
      };
    });
  }
}
