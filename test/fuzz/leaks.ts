import { readdirSync, readlinkSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { systemClock } from "../../src/ground/base/index.ts";

/** What a process holds, to compare before and after. */
interface Holdings {
  readonly descriptors: number;
  readonly timers: number;
  readonly heapBytes: number;
}

/** A pool's thread, a resolver or a look at the process itself opens a few once and for all. */
const spareDescriptors = 2;
/** The runner and the harness have some of their own. */
const spareTimers = 5;
/** Compiled code, caches that fill, and what the harness notes take some; a leak of each round takes more. */
const spareHeapBytes = 64 * 1024 * 1024;

/** Descriptors of this process: files, sockets, pipes. */
export function openDescriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

/** What they are, such as `3 socket, 1 /some/file`: to say what leaks. */
export function describeDescriptors(): string {
  const counts = new Map<string, number>();
  for (const name of readdirSync("/proc/self/fd")) {
    const kind = targetOf(name).replace(/:\[\d+\]$/, "");
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
}

function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // The one by which the list itself was read.
    return "gone";
  }
}

/** Fails if more is held than there was at its making, as soon as all has had the time to be given back. */
export class LeakCheck {
  readonly #before = holdings();

  async check(withinMs: number): Promise<void> {
    const deadline = systemClock.monotonic() + withinMs;
    for (;;) {
      const found = excess(this.#before, holdings());
      if (found.length === 0) return;
      if (systemClock.monotonic() > deadline)
        throw new Error(`something leaks: ${found.join(", ")} (${describeDescriptors()})`);
      await systemClock.sleep(100, new AbortController().signal);
    }
  }
}

function excess(before: Holdings, now: Holdings): readonly string[] {
  const spare: Holdings = { descriptors: spareDescriptors, timers: spareTimers, heapBytes: spareHeapBytes };
  return (["descriptors", "timers", "heapBytes"] as const)
    .filter((kind) => now[kind] > before[kind] + spare[kind])
    .map((kind) => `${now[kind]} ${kind}, ${before[kind]} before`);
}

function holdings(): Holdings {
  collect();
  return {
    descriptors: openDescriptors(),
    timers: process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length,
    heapBytes: process.memoryUsage().heapUsed,
  };
}

/** Without it the heap holds what nobody holds any more. */
function collect(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
