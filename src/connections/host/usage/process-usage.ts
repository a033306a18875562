import { opendirSync, readlinkSync, statSync } from "node:fs";
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
    openFiles: countFiles(pid, root, firstDescriptors(pid, root, mostDescriptors), mostDescriptors),
    mostOpenFiles: readOpenFileLimit(pid, root),
    startedAt: bootTime + field(22) / ticksPerSecond,
    wakeUps: said("voluntary_ctxt_switches"),
  };
}

export interface OpenFiles {
  readonly files: number;
  readonly sockets: number;
}

/**
 * So many descriptors of a process are listed, and looked at one by one, at the most. A container may have a million in
 * each of its processes, and nothing else of the agent goes on meanwhile.
 */
export const mostDescriptors = 1_000;

/** Of more than `most` the sockets among the first are told, and as many files as the kernel says. */
export function readOpenFiles(pid: number | "self", root = "", most = mostDescriptors): OpenFiles {
  const names = firstDescriptors(pid, root, most);
  const sockets = names.filter((name) => isSocket(`${root}/proc/${pid}/fd/${name}`));
  return { files: countFiles(pid, root, names, most), sockets: sockets.length };
}

function firstDescriptors(pid: number | "self", root: string, most: number): readonly string[] {
  const names: string[] = [];
  try {
    const directory = opendirSync(`${root}/proc/${pid}/fd`);
    try {
      for (let entry = directory.readSync(); entry !== null && names.length < most; entry = directory.readSync()) {
        names.push(entry.name);
      }
    } finally {
      directory.closeSync();
    }
  } catch {
    // The process has ended.
  }
  return names;
}

/** The kernel tells the number as the directory's size since 6.2; before, what was listed is all that is known. */
function countFiles(pid: number | "self", root: string, listed: readonly string[], most: number): number {
  if (listed.length < most) return listed.length;
  try {
    return Math.max(listed.length, statSync(`${root}/proc/${pid}/fd`).size);
  } catch {
    return listed.length;
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
