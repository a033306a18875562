import { Worker } from "node:worker_threads";
import { systemClock, type Timer } from "./clock.ts";
import { messageOf } from "./errors.ts";
import type { ProcessJob, ProcessNews, ProcessOrder, ResultOf } from "./process-messages.ts";
import { never } from "./signals.ts";

/** Who wants a process. One of the first three is called, unless it was ended before. */
export interface ProcessListener<Job extends ProcessJob> {
  result(result: ResultOf<Job>): void;
  notStarted(error: Error): void;
  /** It says too much, or can't be heard any more. */
  failure(error: Error): void;
  message?(message: unknown): void;
  /** It has really ended, which may be long after it was told to; or it could not be started. */
  gone?(): void;
}

export interface StartedProcess {
  /** Nobody wants it any more. */
  end(): void;
}

interface Process {
  readonly id: number;
  readonly job: ProcessJob;
  readonly listener: ProcessListener<ProcessJob>;
  /** Whether somebody waits for it: to tell how it ended, or to have been told to end. */
  isAwaited: boolean;
  isEnded: boolean;
  isGone: boolean;
}

interface StartingThread {
  readonly worker: Worker;
  readonly processes: Map<number, Process>;
  /** It has loaded its code. */
  isReady: boolean;
  /** The one that is being started, and when that takes too long. */
  starting: { readonly process: Process; late: Timer } | undefined;
}

/** A thread that starts something for so long is left alone with it; to load its code may take a busy machine longer. */
const longestStartMs = 5_000;
const longestLoadMs = 60_000;
/** What hangs while it is started can't be given up; so many may. The others then wait for the first that goes on. */
const mostAside = 4;
/** Whoever needs one program often needs the next, and a thread takes nine megabytes. */
const idleMs = 10_000;
const farewellMs = 500;
const farewellLookMs = 5;

const isBundled = !import.meta.url.endsWith(".ts");
const entry = new URL(isBundled ? "./process-thread.mjs" : "./process-thread.ts", import.meta.url);
/** Benches run the sources as they are, which a thread has to be told how to read. */
const readingSources = `import("tsx/esm/api").then(({ register }) => (register(), import("${entry}")))`;

/**
 * Starts processes by a thread. Node stands still until the new process has loaded its program: for that it needs a turn
 * on a processor, for which it may wait half a second where pods take all there is, and its file, which may lie on a
 * server that is away. The thread is made when it is needed. One that hangs is put aside, and the next is made.
 */
class ProcessStarter {
  readonly #queue: Process[] = [];
  readonly #aside = new Set<StartingThread>();
  #thread: StartingThread | undefined;
  #idle: Timer | undefined;
  #lastId = 0;

  start<Job extends ProcessJob>(job: Job, listener: ProcessListener<Job>): StartedProcess {
    const process: Process = { id: ++this.#lastId, job, listener, isAwaited: true, isEnded: false, isGone: false };
    this.#queue.push(process);
    this.#next();
    return { end: () => this.#end(process) };
  }

  /**
   * Waits a moment until whatever is to end has been told; then says whether a thread hangs, for which Node would wait at
   * the end of this process.
   */
  async farewell(): Promise<{ readonly hangs: boolean }> {
    const until = systemClock.monotonic() + farewellMs;
    const threads = (): StartingThread[] => [...this.#aside, ...(this.#thread === undefined ? [] : [this.#thread])];
    const isAnyUntold = (): boolean =>
      threads().some((thread) => [...thread.processes.values()].some((each) => each.isEnded && each.isAwaited));
    while (isAnyUntold() && systemClock.monotonic() < until) await systemClock.sleep(farewellLookMs, never);
    return { hangs: threads().some(({ starting }) => starting !== undefined) };
  }

  #next(): void {
    while (this.#thread?.starting === undefined) {
      if (this.#thread === undefined && this.#aside.size >= mostAside) return;
      const process = this.#queue.shift();
      if (process === undefined) return;
      try {
        this.#thread ??= this.#newThread();
        this.#begin(this.#thread, process);
      } catch (error) {
        giveUp(process, "notStarted", new Error(messageOf(error), { cause: error }));
        process.listener.gone?.();
      }
    }
  }

  #begin(thread: StartingThread, process: Process): void {
    this.#idle?.cancel();
    thread.processes.set(process.id, process);
    thread.starting = { process, late: this.#whenLate(thread) };
    order(thread, { type: "start", id: process.id, job: process.job });
    holdIfAwaited(thread);
  }

  #end(process: Process): void {
    if (process.isEnded) return;
    process.isEnded = true;
    const waiting = this.#queue.indexOf(process);
    if (waiting >= 0) {
      this.#queue.splice(waiting, 1);
      process.isAwaited = false;
      process.isGone = true;
      process.listener.gone?.();
      return;
    }
    const thread = [this.#thread, ...this.#aside].find((each) => each?.processes.get(process.id) === process);
    if (thread !== undefined) order(thread, { type: "end", id: process.id });
  }

  #newThread(): StartingThread {
    // What it keeps is what programs say; of what is for the moment it needs little.
    const resourceLimits = { maxYoungGenerationSizeMb: 4 };
    const worker = new Worker(isBundled ? entry : readingSources, { eval: !isBundled, resourceLimits });
    const thread: StartingThread = { worker, processes: new Map(), isReady: false, starting: undefined };
    let reason = "the thread that starts programs has ended";
    worker.on("message", (news: ProcessNews) => this.#hear(thread, news));
    worker.on("error", (error) => {
      reason = messageOf(error);
    });
    worker.on("exit", () => this.#lost(thread, reason));
    return thread;
  }

  #whenLate(thread: StartingThread): Timer {
    return systemClock.after(thread.isReady ? longestStartMs : longestLoadMs, () => this.#putAside(thread));
  }

  #ready(thread: StartingThread): void {
    thread.isReady = true;
    if (thread.starting === undefined) return;
    thread.starting.late.cancel();
    thread.starting.late = this.#whenLate(thread);
  }

  #hear(thread: StartingThread, news: ProcessNews): void {
    if (news.type === "ready") {
      this.#ready(thread);
      return;
    }
    const process = thread.processes.get(news.id);
    if (process === undefined) return;
    const { listener } = process;
    switch (news.type) {
      case "begun":
        this.#begun(thread);
        break;
      case "message":
        if (!process.isEnded) listener.message?.(news.message);
        break;
      case "gone":
        process.isGone = true;
        listener.gone?.();
        break;
      case "told to end":
        process.isAwaited = false;
        break;
      case "result":
        process.isAwaited = false;
        if (!process.isEnded) listener.result(news.result as never);
        process.isEnded = true;
        break;
      case "not started":
      case "failure": {
        const { message, code } = news.failure;
        const error = Object.assign(new Error(message), code !== undefined && { code });
        giveUp(process, news.type === "failure" ? "failure" : "notStarted", error);
      }
    }
    if (!process.isAwaited && process.isGone) thread.processes.delete(process.id);
    holdIfAwaited(thread);
    this.#restIfIdle(thread);
  }

  #begun(thread: StartingThread): void {
    thread.starting?.late.cancel();
    thread.starting = undefined;
    // It hangs no more, and all others do.
    if (this.#thread === undefined && this.#aside.delete(thread)) this.#thread = thread;
    this.#next();
  }

  /** It hangs. What it has started goes on by itself, and is heard of when it hangs no more. */
  #putAside(thread: StartingThread): void {
    if (this.#thread !== thread) return;
    this.#aside.add(thread);
    this.#thread = undefined;
    this.#next();
  }

  #restIfIdle(thread: StartingThread): void {
    if (thread.processes.size > 0) return;
    if (this.#aside.delete(thread)) void thread.worker.terminate();
    if (this.#thread !== thread) return;
    this.#idle?.cancel();
    this.#idle = systemClock.after(idleMs, () => {
      if (this.#thread !== thread || thread.processes.size > 0) return;
      this.#thread = undefined;
      void thread.worker.terminate();
    });
  }

  #lost(thread: StartingThread, reason: string): void {
    const unstarted = thread.starting?.process;
    thread.starting?.late.cancel();
    this.#aside.delete(thread);
    if (this.#thread === thread) this.#thread = undefined;
    for (const process of thread.processes.values()) {
      giveUp(process, process === unstarted ? "notStarted" : "failure", new Error(reason));
      if (!process.isGone) process.listener.gone?.();
    }
    thread.processes.clear();
    this.#next();
  }
}

export const processes = new ProcessStarter();

function order({ worker }: StartingThread, message: ProcessOrder): void {
  worker.postMessage(message);
}

function giveUp(process: Process, how: "notStarted" | "failure", error: Error): void {
  process.isAwaited = false;
  if (!process.isEnded) process.listener[how](error);
  process.isEnded = true;
}

/** A thread keeps the process alive as long as somebody waits for what it does, and a thread that hangs does not. */
function holdIfAwaited({ worker, processes }: StartingThread): void {
  if ([...processes.values()].some(({ isAwaited }) => isAwaited)) worker.ref();
  else worker.unref();
}
