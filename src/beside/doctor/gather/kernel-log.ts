import { join } from "node:path";
import { setImmediate as immediate } from "node:timers/promises";
import type { ExaminedWorld } from "../world.ts";

/** What the kernel has said in the last day. */
export interface KernelLogFacts {
  readonly records: readonly KernelLine[];
}

export interface KernelLine {
  readonly agoMs: number;
  readonly text: string;
}

const mostRecords = 20_000;
const atOnce = 128;
const dayMs = 86_400_000;

export async function gatherKernelLog({ machine, root }: ExaminedWorld, signal: AbortSignal): Promise<KernelLogFacts> {
  const { KernelLog } = await import("../../../connections/host/index.ts");
  const uptimeMs = Number((await machine.text("/proc/uptime", 64)).split(" ")[0]) * 1000;
  await using log = await KernelLog.open(join(root, "dev/kmsg"));
  const records: KernelLine[] = [];
  for (let seen = 0; seen < mostRecords; seen += atOnce) {
    const some = log.read(atOnce);
    for (const { micros, text } of some) {
      const agoMs = uptimeMs - micros / 1000;
      if (agoMs < dayMs) records.push({ agoMs, text });
    }
    if (some.length < atOnce) break;
    // The agent's dashboard asks from within the agent: nobody waits for the whole log.
    await immediate();
    signal.throwIfAborted();
  }
  return { records };
}
