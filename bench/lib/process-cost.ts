import { readdirSync, readFileSync } from "node:fs";

/** What a process holds at one moment. */
export interface ProcessHold {
  readonly rssMb: number;
  readonly files: number;
}

export function holdOf(pid: number): ProcessHold {
  const kb = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return { rssMb: Math.round(Number(kb) / 102.4) / 10, files: readdirSync(`/proc/${pid}/fd`).length };
}

/** How busy the machine is; figures taken on a busy one say little. */
export function load(): number {
  return Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);
}
