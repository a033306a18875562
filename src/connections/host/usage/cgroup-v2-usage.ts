import { readdirSync, statSync } from "node:fs";
import type {
  CgroupDetails,
  CgroupGlance,
  CgroupReader,
  CgroupUsage,
  DeviceIo,
  MemoryUsage,
  Pressures,
} from "./cgroup-usage.ts";
import { readKernelEntry, readKernelFile, readKernelNumber, readKernelTable } from "./kernel-file.ts";
import { readMemoryOfMachine } from "./machine-usage.ts";
import { readPressureOfMachine, readPressures } from "./pressure.ts";

/** The unified hierarchy. */
export class CgroupV2Usage implements CgroupReader {
  readonly #mountPoint: string;
  readonly #root: string;

  constructor(mountPoint: string, root: string) {
    this.#mountPoint = mountPoint;
    this.#root = root;
  }

  exists(path: string): boolean {
    return statSync(this.#file(path, ""), { throwIfNoEntry: false })?.isDirectory() === true;
  }

  children(path: string): readonly string[] {
    return subdirectories(this.#file(path, ""));
  }

  usage(path: string): CgroupUsage {
    const cpu = readKernelTable(this.#file(path, "cpu.stat"));
    const usec = cpu?.get("usage_usec");
    const toNanoseconds = (key: string): number | undefined => {
      const value = cpu?.get(key);
      return value === undefined ? undefined : value * 1000;
    };
    return {
      cpu:
        usec === undefined
          ? undefined
          : {
              usageNanoseconds: usec * 1000,
              userNanoseconds: toNanoseconds("user_usec"),
              systemNanoseconds: toNanoseconds("system_usec"),
            },
      memory: this.memory(path),
    };
  }

  glance(path: string): CgroupGlance {
    const microseconds = readKernelEntry(this.#file(path, "cpu.stat"), "usage_usec");
    const usageBytes = readKernelNumber(this.#file(path, "memory.current"));
    const inactive = readKernelEntry(this.#file(path, "memory.stat"), "inactive_file");
    return {
      cpuNanoseconds: microseconds === undefined ? undefined : microseconds * 1000,
      workingSetBytes: usageBytes === undefined ? undefined : Math.max(0, usageBytes - (inactive ?? 0)),
    };
  }

  tasks(path: string): number | undefined {
    return readKernelNumber(this.#file(path, "pids.current"));
  }

  memory(path: string): MemoryUsage | undefined {
    const stat = readKernelTable(this.#file(path, "memory.stat"));
    if (stat === undefined) return undefined;
    const value = (key: string): number => stat.get(key) ?? 0;
    const isTop = path === "/";
    const machine = isTop ? readMemoryOfMachine(this.#root) : undefined;
    // The top has no counter of its own.
    const usageBytes = readKernelNumber(this.#file(path, "memory.current")) ?? value("anon") + value("file");
    const inactiveFileBytes = value("inactive_file");
    return {
      usageBytes,
      workingSetBytes: Math.max(0, usageBytes - inactiveFileBytes),
      rssBytes: value("anon"),
      cacheBytes: value("file"),
      mappedFileBytes: value("file_mapped"),
      activeFileBytes: value("active_file"),
      inactiveFileBytes,
      pageFaults: value("pgfault"),
      majorPageFaults: value("pgmajfault"),
      ownPageFaults: undefined,
      kernelBytes: stat.get("kernel"),
      swapBytes: machine?.swapUsedBytes ?? readKernelNumber(this.#file(path, "memory.swap.current")) ?? 0,
      limitBytes: machine?.totalBytes ?? readKernelNumber(this.#file(path, "memory.max")),
      swapLimitBytes: machine?.swapTotalBytes ?? readKernelNumber(this.#file(path, "memory.swap.max")),
    };
  }

  details(path: string): CgroupDetails {
    const cpu = readKernelTable(this.#file(path, "cpu.stat"));
    const [quota, period] = (readKernelFile(this.#file(path, "cpu.max")) ?? "").trim().split(" ");
    const events = readKernelTable(this.#file(path, "memory.events"));
    const weight = readKernelNumber(this.#file(path, "cpu.weight"));
    const isLimited = quota !== undefined && /^\d+$/.test(quota);
    return {
      throttling: isLimited
        ? {
            periods: cpu?.get("nr_periods") ?? 0,
            throttledPeriods: cpu?.get("nr_throttled") ?? 0,
            throttledNanoseconds: (cpu?.get("throttled_usec") ?? 0) * 1000,
          }
        : undefined,
      cpuShares: weight === undefined ? undefined : sharesOfWeight(weight),
      cpuPeriodMicroseconds: period === undefined ? undefined : Number(period),
      cpuQuotaMicroseconds: isLimited ? Number(quota) : undefined,
      memoryPeakBytes: readKernelNumber(this.#file(path, "memory.peak")),
      memoryFailures: events?.get("max"),
      memoryKernelBytes: undefined,
      memoryReservationBytes: readKernelNumber(this.#file(path, "memory.low")),
      memorySwapLimitBytes: readKernelNumber(this.#file(path, "memory.swap.max")),
      oomKills: events?.get("oom_kill"),
      io: parseIoStat(readKernelFile(this.#file(path, "io.stat")) ?? ""),
      tasks: this.tasks(path),
      tasksLimit: readKernelNumber(this.#file(path, "pids.max")),
    };
  }

  oomKills(path: string): number | undefined {
    return readKernelTable(this.#file(path, "memory.events"))?.get("oom_kill");
  }

  pressures(path: string): Pressures | undefined {
    // The top has none of its own; the machine's is the same thing.
    return path === "/"
      ? readPressureOfMachine(this.#root)
      : readPressures((kind) => this.#file(path, `${kind}.pressure`));
  }

  processes(path: string): readonly number[] {
    return parseProcesses(readKernelFile(this.#file(path, "cgroup.procs")));
  }

  createdAt(path: string): number | undefined {
    const times = ["", "cgroup.events"].map(
      (name) => statSync(this.#file(path, name), { throwIfNoEntry: false })?.mtimeMs,
    );
    const known = times.filter((time) => time !== undefined);
    return known.length === 0 ? undefined : Math.min(...known);
  }

  #file(path: string, name: string): string {
    return `${this.#mountPoint}${path === "/" ? "" : path}/${name}`;
  }
}

/** `8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0` */
export function parseIoStat(text: string): readonly DeviceIo[] {
  return text.split("\n").flatMap((line) => {
    const [, major, minor, rest] = /^(\d+):(\d+) (.*)$/.exec(line) ?? [];
    if (rest === undefined) return [];
    const value = (key: string): number => Number(new RegExp(`\\b${key}=(\\d+)`).exec(rest)?.[1] ?? 0);
    return [
      {
        major: Number(major),
        minor: Number(minor),
        readBytes: value("rbytes"),
        writeBytes: value("wbytes"),
        reads: value("rios"),
        writes: value("wios"),
      },
    ];
  });
}

export function parseProcesses(text: string | undefined): readonly number[] {
  return (text ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);
}

export function subdirectories(directory: string): readonly string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}

/** The inverse of how shares become a weight. */
function sharesOfWeight(weight: number): number {
  return Math.round(2 + ((weight - 1) * 262_142) / 9_999);
}
