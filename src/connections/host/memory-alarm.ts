import { closeSync, watch } from "node:fs";
import { open } from "node:fs/promises";
import { hasCode } from "../../ground/base/index.ts";
import type { CgroupLayout } from "./cgroups.ts";
import { onNews } from "./readiness.ts";
import { loadSyscalls } from "./syscalls.ts";

/** Tells at once when memory gets short, where the kernel can. Nothing is told twice in a row for one reason. */
export interface MemoryAlarm extends Disposable {
  /** Whether it has to be told from which usage on. */
  readonly isSetByUsage: boolean;
  /** The kernel tells when the cgroup uses more than this, or less again. Replaces what was set before. */
  set(usageBytes: number): Promise<void>;
}

/** Of a cgroup, or of the machine ("/"). Rejects where the kernel has nothing to tell. */
export async function openMemoryAlarm(layout: CgroupLayout, path: string, tell: () => void): Promise<MemoryAlarm> {
  if (layout.version === 2) return await openStallAlarm(layout.mountPoint, path, tell);
  const mountPoint = layout.mountPoints.get("memory");
  if (mountPoint === undefined) throw new Error("the machine has no cgroups that count memory");
  return new UsageAlarm(`${mountPoint}${path === "/" ? "" : path}`, tell);
}

/** Version 1: the kernel compares the usage of the cgroup with a number whenever it changes. */
class UsageAlarm implements MemoryAlarm {
  readonly isSetByUsage = true;
  readonly #directory: string;
  readonly #tell: () => void;
  #armed: Disposable | undefined;
  #isOver = false;

  constructor(directory: string, tell: () => void) {
    this.#directory = directory;
    this.#tell = tell;
  }

  async set(usageBytes: number): Promise<void> {
    const next = await this.#arm(usageBytes);
    this.#armed?.[Symbol.dispose]();
    this.#armed = next;
    if (this.#isOver) this[Symbol.dispose]();
  }

  async #arm(usageBytes: number): Promise<Disposable> {
    const counter = (await loadSyscalls()).openEventCounter();
    try {
      await using usage = await open(`${this.#directory}/memory.usage_in_bytes`);
      await using control = await open(`${this.#directory}/cgroup.event_control`, "w");
      await control.write(`${counter} ${usage.fd} ${Math.trunc(usageBytes)}`);
      const watching = await onNews(counter, "readable", this.#tell);
      return {
        [Symbol.dispose]() {
          watching[Symbol.dispose]();
          // The kernel forgets the number with the last descriptor of the counter.
          closeSync(counter);
        },
      };
    } catch (error) {
      closeSync(counter);
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#armed?.[Symbol.dispose]();
    this.#armed = undefined;
  }
}

/** Processes waited for memory for a tenth of half a second; who may not ask for that gets a window of two seconds. */
const stalls = ["some 50000 500000", "some 200000 2000000"];

/** Version 2: the kernel tells when processes had to wait for memory, and when the cgroup has run into its limit. */
async function openStallAlarm(mountPoint: string, path: string, tell: () => void): Promise<MemoryAlarm> {
  const isMachine = path === "/";
  const file = await open(isMachine ? "/proc/pressure/memory" : `${mountPoint}${path}/memory.pressure`, "r+");
  try {
    await writeFirstAllowed(file, stalls);
    const stalled = await onNews(file.fd, "urgent", tell);
    const limits = isMachine ? undefined : watch(`${mountPoint}${path}/memory.events`, { persistent: false }, tell);
    limits?.on("error", () => limits.close());
    return {
      isSetByUsage: false,
      set: async () => {},
      [Symbol.dispose]() {
        limits?.close();
        stalled[Symbol.dispose]();
        void file.close();
      },
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function writeFirstAllowed(
  file: { write(text: string): Promise<unknown> },
  texts: readonly string[],
): Promise<void> {
  for (const [index, text] of texts.entries()) {
    try {
      await file.write(`${text}\0`);
      return;
    } catch (error) {
      if (!hasCode(error, "EINVAL") || index === texts.length - 1) throw error;
    }
  }
}
