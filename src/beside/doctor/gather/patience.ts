import { availableParallelism } from "node:os";
import type { HostFiles } from "./files.ts";

/** Nobody waits for longer than this many times the usual. */
const mostPatience = 5;

/**
 * How many times as long as usual everything may take: where five want to work for each processor, each takes five times
 * as long, and what is only slow must not be told as what does not answer.
 */
export async function patienceOn(machine: HostFiles, processors = availableParallelism()): Promise<number> {
  const text = await machine.textIfThere("/proc/loadavg").catch(() => undefined);
  const load = Number(text?.split(" ")[0]);
  return Number.isFinite(load) ? Math.min(mostPatience, Math.max(1, load / processors)) : 1;
}

/** "1.6 s" */
export function secondsText(ms: number): string {
  return `${Number((ms / 1000).toFixed(1))} s`;
}
