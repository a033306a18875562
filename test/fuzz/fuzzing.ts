import { readFileSync } from "node:fs";
import { type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { test } from "node:test";
import { systemClock } from "../../src/ground/base/index.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { LeakCheck } from "./leaks.ts";

/** What a fuzzer has while it runs. */
export interface FuzzRun {
  /** The same numbers for the same seed. */
  readonly random: FuzzRandom;
  /**
   * True until the time is over or something has gone wrong: `while (run.goesOn()) …`. Standstills and leaks count from
   * the first call on: what goes before is set-up, which loads and compiles most of its code.
   */
  goesOn(): boolean;
  /** Fires when the time is over. */
  readonly signal: AbortSignal;
}

export interface FuzzOptions {
  /** Longest time the event loop may be kept by work of ours, on a machine of usual speed; a busy one does not count. */
  readonly standstillMs?: number;
  /** How long what was in use may take to be given back. */
  readonly givenBackWithinMs?: number;
}

/** How late a look at the loop may be because of the machine (its disk, its host), as a multiple of what our own work may take. */
const busyMachineFactor = 40;
const lookEveryMs = 20;
const defaultStandstillMs = 500;
/** Whatever should happen has happened by then, on a machine that gives us a tenth of a core too. */
export const patienceMs = 100_000;
const defaultSeconds = 20;
/** Set-up and clean-up beside the fuzzing itself. */
const aroundItMs = 180_000;
/** How much longer than its time a fuzzer goes on where others have the machine: what it could not do was not tried. */
const longestFactor = 5;

/**
 * Registers a test that runs for NODELET_FUZZ_SECONDS (20) from the seed NODELET_FUZZ_SEED (a new one each time), which
 * it prints. Fails by what `run` throws, by any exception that nobody caught, any standstill of the event loop, and any
 * descriptor, timer, listener or memory that is held more and more.
 */
export function fuzzTest(name: string, run: (fuzz: FuzzRun) => Promise<void>, options: FuzzOptions = {}): void {
  const seconds = positive(process.env["NODELET_FUZZ_SECONDS"]) ?? defaultSeconds;
  test(name, { timeout: seconds * 1_000 * longestFactor + aroundItMs }, async (context) => {
    const seed = positive(process.env["NODELET_FUZZ_SEED"]) ?? (systemClock.now() % 0x7fff_ffff) + 1;
    const repeat = `NODELET_FUZZ_SEED=${seed} NODELET_FUZZ_SECONDS=${seconds}`;
    context.diagnostic(repeat);
    try {
      await runWatched(seed, seconds * 1_000, run, options);
    } catch (error) {
      throw new Error(`${describe(error)}; try again with ${repeat}`, { cause: error });
    }
  });
}

/** Exported for the test of itself. */
export async function runWatched(
  seed: number,
  ms: number,
  run: (fuzz: FuzzRun) => Promise<void>,
  { standstillMs = defaultStandstillMs, givenBackWithinMs = patienceMs }: FuzzOptions = {},
): Promise<void> {
  const problems: unknown[] = [];
  const over = new AbortController();
  const note = (problem: unknown): void => {
    problems.push(problem);
    over.abort();
  };
  const onUncaught = (error: unknown): void => note(new Error("nobody caught an exception", { cause: error }));
  process.on("uncaughtException", onUncaught);
  process.on("unhandledRejection", onUncaught);
  // More listeners of one event than are usual have been forgotten, not wanted.
  const onWarning = (warning: Error): void => {
    if (warning.name === "MaxListenersExceededWarning") note(warning);
  };
  process.on("warning", onWarning);
  let leaks: LeakCheck | undefined;
  let watch: StandstillWatch | undefined;
  let time: FuzzTime | undefined;
  try {
    const goesOn = (): boolean => {
      leaks ??= new LeakCheck();
      watch ??= new StandstillWatch(standstillMs, note);
      time ??= new FuzzTime(ms, () => over.abort());
      return !over.signal.aborted;
    };
    await run({ random: new FuzzRandom(seed), goesOn, signal: over.signal });
    // What was begun last may still fail.
    await systemClock.sleep(lookEveryMs, new AbortController().signal);
    watch?.stop();
    time?.stop();
    // One problem is enough: what it left behind is no leak.
    if (problems.length === 0) await leaks?.check(givenBackWithinMs);
  } catch (error) {
    problems.push(error);
  } finally {
    time?.stop();
    watch?.stop();
    process.off("uncaughtException", onUncaught);
    process.off("unhandledRejection", onUncaught);
    process.off("warning", onWarning);
  }
  if (problems.length === 1) throw problems[0];
  if (problems.length > 1) throw new AggregateError(problems.slice(0, 10), `${problems.length} problems`);
}

/** Ends when the time is over, of which waiting for a processor is no part. */
class FuzzTime {
  readonly #beganAt = systemClock.monotonic();
  readonly #queuedBefore = threadTimes().queuedMs;
  #timer = systemClock.after(0, () => {});

  constructor(ms: number, onOver: () => void) {
    this.#wait(ms, ms, onOver);
  }

  #wait(leftMs: number, ms: number, onOver: () => void): void {
    this.#timer = systemClock.after(leftMs, () => {
      const passedMs = systemClock.monotonic() - this.#beganAt;
      const usedMs = passedMs - (threadTimes().queuedMs - this.#queuedBefore);
      if (usedMs >= ms || passedMs >= ms * longestFactor) onOver();
      else this.#wait(Math.max(ms - usedMs, lookEveryMs), ms, onOver);
    });
  }

  stop(): void {
    this.#timer.cancel();
  }
}

/** Looks again and again; a late look with as much processor time spent by this thread is a standstill of our making. */
class StandstillWatch {
  readonly #limitMs: number;
  readonly #onStandstill: (error: Error) => void;
  readonly #collector = new CollectorTime();
  #timer = systemClock.after(0, () => {});

  constructor(limitMs: number, onStandstill: (error: Error) => void) {
    this.#limitMs = limitMs;
    this.#onStandstill = onStandstill;
    slowness();
    this.#look(systemClock.monotonic(), threadTimes());
  }

  #look(before: number, timesBefore: ThreadTimes): void {
    this.#timer = systemClock.after(lookEveryMs, () => {
      const times = threadTimes();
      const collectingMs = this.#collector.sinceLast();
      // Not on a core though it could be: others have the machine, for seconds where it is small and we are nice.
      const queuedMs = times.queuedMs - timesBefore.queuedMs;
      const lateMs = systemClock.monotonic() - before - lookEveryMs - queuedMs - collectingMs;
      if (lateMs > this.#limitMs) this.#judge(lateMs, times.busyMs - timesBefore.busyMs - collectingMs);
      this.#look(systemClock.monotonic(), threadTimes());
    });
  }

  #judge(lateMs: number, ownMs: number): void {
    // How fast the machine is just now: others on it take their share of its caches, its clock and its real cores.
    const limitMs = this.#limitMs * slowness();
    // Work of ours that waits rather than computes holds the loop just as well, only longer than any busy machine.
    if ((lateMs <= limitMs || ownMs <= limitMs) && lateMs <= limitMs * busyMachineFactor) return;
    const found = `${lateMs.toFixed()} ms, ${ownMs.toFixed()} ms of them busy`;
    this.#onStandstill(new Error(`the event loop stood still for ${found}; wanted at most ${limitMs.toFixed()} ms`));
  }

  stop(): void {
    this.#timer.cancel();
    this.#collector.stop();
  }
}

/**
 * How long the collector held the thread. Node's test runner follows every promise, and a fuzzer makes them by the
 * million: what the collector has to do here says nothing of the agent. `npm run bench hostile` counts its pauses there,
 * and whether memory is held is looked at on its own.
 */
class CollectorTime {
  #ms = 0;
  readonly #observer = new PerformanceObserver((list) => this.#add(list.getEntries()));

  constructor() {
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  sinceLast(): number {
    this.#add(this.#observer.takeRecords());
    const ms = this.#ms;
    this.#ms = 0;
    return ms;
  }

  stop(): void {
    this.#observer.disconnect();
  }

  #add(entries: readonly PerformanceEntry[]): void {
    for (const { duration } of entries) this.#ms += duration;
  }
}

interface ThreadTimes {
  readonly busyMs: number;
  readonly queuedMs: number;
}

/** Of this thread alone: compilers, collectors and the pool's threads hold up nobody. */
function threadTimes(): ThreadTimes {
  const [busy, queued] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
  return { busyMs: Number(busy) / 1e6, queuedMs: Number(queued) / 1e6 };
}

/** A piece of work for a measure, and what it takes on a machine of usual speed. */
const measureRounds = 60;
const usualMeasureMs = 20;

/** How much slower than usual the machine is; never less than 1. */
function slowness(): number {
  const before = threadTimes().busyMs;
  for (let round = 0; round < measureRounds; round++) {
    const list = Array.from({ length: 500 }, (_, index) => ({ name: `n${index}`, value: [round, index] }));
    JSON.parse(JSON.stringify(list));
  }
  return Math.max(1, (threadTimes().busyMs - before) / usualMeasureMs);
}

/** Choices that a seed repeats. */
export class FuzzRandom {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seededRandom(seed);
  }

  /** From 0 to below 1. */
  fraction(): number {
    return this.#next();
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.#next() * end);
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }

  /** Text of a few characters or many, drawn from `alphabet`. */
  text(longest: number, alphabet = "abcXYZ019-._~/%$() \t\u00e9\u3042\u{1f600}"): string {
    const characters = [...alphabet];
    return Array.from({ length: this.below(longest + 1) }, () => this.pick(characters)).join("");
  }
}

function positive(text: string | undefined): number | undefined {
  const value = Number(text);
  return Number.isFinite(value) && value > 0 ? value : undefined;
}

function describe(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describe).join("; ");
  const cause = error instanceof Error && error.cause !== undefined ? `: ${describe(error.cause)}` : "";
  return `${error instanceof Error ? (error.stack ?? error.message) : String(error)}${cause}`;
}
