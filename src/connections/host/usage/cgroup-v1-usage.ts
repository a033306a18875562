import { statSync } from "node:fs";
import type {
  CgroupDetails,
  CgroupGlance,
  CgroupReader,
  CgroupUsage,
  DeviceIo,
  MemoryUsage,
  Pressures,
} from "./cgroup-usage.ts";
import { parseProcesses, subdirectories } from "./cgroup-v2-usage.ts";
import { readKernelEntry, readKernelFile, readKernelNumber, readKernelTable } from "./kernel-file.ts";
import { readMemoryOfMachine } from "./machine-usage.ts";
import { readPressureOfMachine } from "./pressure.ts";

// What the kernel counts user and system time in, whatever its own tick is.
const nanosecondsPerTick = 10_000_000;
// The kernel says "no limit" by the largest number of whole pages.
const unlimitedFrom = 2 ** 62;

/** One hierarchy per controller. */
export class CgroupV1Usage implements CgroupReader {
  readonly #mountPoints: ReadonlyMap<string, string>;
  readonly #root: string;

  constructor(mountPoints: ReadonlyMap<string, string>, root: string) {
    this.#mountPoints = mountPoints;
    this.#root = root;
  }

  exists(path: string): boolean {
    return statSync(this.#file("memory", path, ""), { throwIfNoEntry: false })?.isDirectory() === true;
  }

  children(path: string): readonly string[] {
    return subdirectories(this.#file("memory", path, ""));
  }

  usage(path: string): CgroupUsage {
    const usageNanoseconds = readKernelNumber(this.#file("cpuacct", path, "cpuacct.usage"));
    const split =
      usageNanoseconds === undefined ? undefined : readKernelTable(this.#file("cpuacct", path, "cpuacct.stat"));
    const ticks = (key: string): number | undefined => {
      const value = split?.get(key);
      return value === undefined ? undefined : value * nanosecondsPerTick;
    };
    return {
      cpu:
        usageNanoseconds === undefined
          ? undefined
          : { usageNanoseconds, userNanoseconds: ticks("user"), systemNanoseconds: ticks("system") },
      memory: this.memory(path),
    };
  }

  glance(path: string): CgroupGlance {
    const usageBytes = readKernelNumber(this.#file("memory", path, "memory.usage_in_bytes"));
    const inactive = readKernelEntry(this.#file("memory", path, "memory.stat"), "total_inactive_file");
    return {
      cpuNanoseconds: readKernelNumber(this.#file("cpuacct", path, "cpuacct.usage")),
      workingSetBytes: usageBytes === undefined ? undefined : Math.max(0, usageBytes - (inactive ?? 0)),
    };
  }

  tasks(path: string): number | undefined {
    return readKernelNumber(this.#file("pids", path, "pids.current"));
  }

  memory(path: string): MemoryUsage | undefined {
    const usageBytes = readKernelNumber(this.#file("memory", path, "memory.usage_in_bytes"));
    const stat = readKernelTable(this.#file("memory", path, "memory.stat"));
    if (usageBytes === undefined || stat === undefined) return undefined;
    const value = (key: string): number => stat.get(`total_${key}`) ?? stat.get(key) ?? 0;
    const machine = path === "/" ? readMemoryOfMachine(this.#root) : undefined;
    const limit = (name: string): number | undefined => {
      const bytes = readKernelNumber(this.#file("memory", path, name));
      return bytes === undefined || bytes > unlimitedFrom ? undefined : bytes;
    };
    const limitBytes = machine?.totalBytes ?? limit("memory.limit_in_bytes");
    // Here the limit is on memory and swap together.
    const both = machine === undefined ? limit("memory.memsw.limit_in_bytes") : undefined;
    const inactiveFileBytes = value("inactive_file");
    return {
      usageBytes,
      workingSetBytes: Math.max(0, usageBytes - inactiveFileBytes),
      rssBytes: value("rss"),
      cacheBytes: value("cache"),
      mappedFileBytes: value("mapped_file"),
      activeFileBytes: value("active_file"),
      inactiveFileBytes,
      pageFaults: value("pgfault"),
      majorPageFaults: value("pgmajfault"),
      ownPageFaults: { minor: stat.get("pgfault") ?? 0, major: stat.get("pgmajfault") ?? 0 },
      kernelBytes: undefined,
      swapBytes: machine?.swapUsedBytes ?? value("swap"),
      limitBytes,
      swapLimitBytes:
        machine?.swapTotalBytes ?? (both === undefined ? undefined : Math.max(0, both - (limitBytes ?? 0))),
    };
  }

  /** Of the cgroup itself, without those below it. */
  oomKills(path: string): number | undefined {
    return readKernelTable(this.#file("memory", path, "memory.oom_control"))?.get("oom_kill");
  }

  details(path: string): CgroupDetails {
    const quota = readKernelNumber(this.#file("cpu", path, "cpu.cfs_quota_us"));
    const throttled =
      quota === undefined || quota <= 0 ? undefined : readKernelTable(this.#file("cpu", path, "cpu.stat"));
    const limit = (name: string): number | undefined => {
      const bytes = readKernelNumber(this.#file("memory", path, name));
      return bytes !== undefined && bytes <= unlimitedFrom ? bytes : undefined;
    };
    return {
      throttling: throttled && {
        periods: throttled.get("nr_periods") ?? 0,
        throttledPeriods: throttled.get("nr_throttled") ?? 0,
        throttledNanoseconds: throttled.get("throttled_time") ?? 0,
      },
      cpuShares: readKernelNumber(this.#file("cpu", path, "cpu.shares")),
      cpuPeriodMicroseconds: readKernelNumber(this.#file("cpu", path, "cpu.cfs_period_us")),
      cpuQuotaMicroseconds: quota !== undefined && quota > 0 ? quota : undefined,
      memoryPeakBytes: readKernelNumber(this.#file("memory", path, "memory.max_usage_in_bytes")),
      memoryFailures: readKernelNumber(this.#file("memory", path, "memory.failcnt")),
      memoryKernelBytes: readKernelNumber(this.#file("memory", path, "memory.kmem.usage_in_bytes")),
      memoryReservationBytes: limit("memory.soft_limit_in_bytes"),
      memorySwapLimitBytes: limit("memory.memsw.limit_in_bytes"),
      oomKills: this.oomKills(path),
      io: this.#io(path),
      tasks: this.tasks(path),
      tasksLimit: readKernelNumber(this.#file("pids", path, "pids.max")),
    };
  }

  /** Of cgroups it is measured in version 2 alone, of the machine in any case. */
  pressures(path: string): Pressures | undefined {
    return path === "/" ? readPressureOfMachine(this.#root) : undefined;
  }

  processes(path: string): readonly number[] {
    return parseProcesses(readKernelFile(this.#file("cpu", path, "cgroup.procs")));
  }

  createdAt(path: string): number | undefined {
    return statSync(this.#file("memory", path, "cgroup.clone_children"), { throwIfNoEntry: false })?.mtimeMs;
  }

  #io(path: string): readonly DeviceIo[] {
    const read = (name: string): string | undefined =>
      readKernelFile(this.#file("blkio", path, `blkio.throttle.${name}_recursive`)) ??
      readKernelFile(this.#file("blkio", path, `blkio.throttle.${name}`));
    return parseBlkio(read("io_service_bytes") ?? "", read("io_serviced") ?? "");
  }

  #file(controller: string, path: string, name: string): string {
    const mountPoint = this.#mountPoints.get(controller) ?? `/nonexistent/${controller}`;
    return `${this.#root}${mountPoint}${path === "/" ? "" : path}/${name}`;
  }
}

/** Lines of `8:0 Read 4096`, once for bytes and once for operations. */
export function parseBlkio(bytes: string, operations: string): readonly DeviceIo[] {
  const devices = new Map<string, { -readonly [Field in keyof DeviceIo]: DeviceIo[Field] }>();
  const fill = (text: string, read: "readBytes" | "reads", write: "writeBytes" | "writes"): void => {
    for (const line of text.split("\n")) {
      const [, major, minor, operation, value] = /^(\d+):(\d+) (Read|Write) (\d+)$/.exec(line) ?? [];
      if (value === undefined) continue;
      const key = `${major}:${minor}`;
      const device = devices.get(key) ?? {
        major: Number(major),
        minor: Number(minor),
        readBytes: 0,
        writeBytes: 0,
        reads: 0,
        writes: 0,
      };
      device[operation === "Read" ? read : write] = Number(value);
      devices.set(key, device);
    }
  };
  fill(bytes, "readBytes", "writeBytes");
  fill(operations, "reads", "writes");
  return [...devices.values()];
}
