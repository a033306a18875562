import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Logger } from "../../ground/base/index.ts";
import { patienceOf } from "./decide.ts";
import { hungNoteName, writeHungNote } from "./hung-note.ts";
import type { Trial } from "./state.ts";

/** What the thread is given. */
export interface GuardOrders {
  /** Counts up with every sign of life. */
  readonly beats: Int32Array;
  readonly limitMs: number;
  readonly notePath: string;
  /** What is to be written there before the process is killed. */
  readonly note: string;
}

/** Beyond the patience of a trial: in this time whoever looks after it has taken it back, or ended the process. */
const slackMs = 90_000;

const entry = new URL(
  import.meta.url.endsWith(".ts") ? "./trial-guard-thread.ts" : "./trial-guard-thread.mjs",
  import.meta.url,
);

/**
 * Kills the process when nobody looks after a trial any more: the event loop is blocked, or what looks waits for a disk
 * that never answers. A thread of its own, and only while there is a trial; it leaves a note, so that the next process
 * goes back at once.
 */
export class TrialGuard {
  readonly #directory: string;
  readonly #log: Logger;
  readonly #slackMs: number;
  #armed: { readonly version: string; readonly thread: Worker; readonly beats: Int32Array } | undefined;

  constructor(directory: string, log: Logger, slack = slackMs) {
    this.#directory = directory;
    this.#log = log;
    this.#slackMs = slack;
  }

  /** The trial is looked after; this must be said again within its patience. */
  beat(trial: Pick<Trial, "version" | "forMs">): void {
    if (this.#armed?.version !== trial.version) {
      this.release();
      this.#armed = this.#arm(trial);
    }
    const { beats } = this.#armed;
    Atomics.add(beats, 0, 1);
    Atomics.notify(beats, 0);
  }

  /** No trial is under way. */
  release(): void {
    const armed = this.#armed;
    this.#armed = undefined;
    armed?.thread.terminate().catch((error: unknown) => this.#log.error("A thread does not end", error));
  }

  #arm({ version, forMs }: Pick<Trial, "version" | "forMs">) {
    const limitMs = patienceOf({ forMs }) + this.#slackMs;
    const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const why = `the agent was stuck with it for ${Math.round(limitMs / 1000)} s, and was killed`;
    const orders: GuardOrders = {
      beats,
      limitMs,
      notePath: join(this.#directory, hungNoteName),
      note: writeHungNote({ version, why }),
    };
    const thread = new Worker(entry, {
      workerData: orders,
      // It only waits; what a thread has by default is for programs.
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 },
    });
    thread.unref();
    thread.on("error", (error) => this.#log.error("A trial goes on without its guard", error, { version }));
    return { version, thread, beats };
  }
}
