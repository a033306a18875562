import { readdirSync, readlinkSync } from "node:fs";
import { readKernelFile } from "./kernel-file.ts";

// What the kernel counts processor time in, whatever its own tick is.
const ticksPerSecond = 100;

/** What one process uses. */
export interface ProcessUsage {
  readonly cpuSeconds: number;
  readonly virtualBytes: number;
  readonly residentBytes: number;
  readonly openFiles: number;
  readonly mostOpenFiles: number | undefined;
  /** Seconds since 1970. */
  readonly startedAt: number;
  /** How often it went to sleep and was woken again. */
  readonly wakeUps: number;
}

export function readProcess(pid: number | "self", root = ""): ProcessUsage | undefined {
  const stat = readKernelFile(`${root}/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name in brackets may hold anything; what follows the last bracket is fields 3 and up.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const field = (number: number): number => Number(fields[number - 3] ?? 0);
  const bootTime = Number(/^btime (\d+)/m.exec(readKernelFile(`${root}/proc/stat`) ?? "")?.[1] ?? 0);
  const status = readKernelFile(`${root}/proc/${pid}/status`) ?? "";
  const said = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
  return {
    cpuSeconds: (field(14) + field(15)) / ticksPerSecond,
    virtualBytes: field(23),
    residentBytes: said("VmRSS") * 1024,
    openFiles: descriptors(pid, root).length,
    mostOpenFiles: readOpenFileLimit(pid, root),
    startedAt: bootTime + field(22) / ticksPerSecond,
    wakeUps: said("voluntary_ctxt_switches"),
  };
}

export interface OpenFiles {
  readonly files: number;
  readonly sockets: number;
}

export function readOpenFiles(pid: number | "self", root = ""): OpenFiles {
  const names = descriptors(pid, root);
  const sockets = names.filter((name) => isSocket(`${root}/proc/${pid}/fd/${name}`));
  return { files: names.length, sockets: sockets.length };
}

function descriptors(pid: number | "self", root: string): readonly string[] {
  try {
    return readdirSync(`${root}/proc/${pid}/fd`);
  } catch {
    return [];
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket:");
  } catch {
    return false;
  }
}

/** How many files the process may have open at once; undefined: unlimited or unknown. */
export function readOpenFileLimit(pid: number | "self", root = ""): number | undefined {
  const limit = /^Max open files\s+(\d+)/m.exec(readKernelFile(`${root}/proc/${pid}/limits`) ?? "")?.[1];
  return limit === undefined ? undefined : Number(limit);
}
