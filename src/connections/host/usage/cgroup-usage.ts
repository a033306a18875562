import type { CgroupLayout } from "../cgroups.ts";
import { CgroupV1Usage } from "./cgroup-v1-usage.ts";
import { CgroupV2Usage } from "./cgroup-v2-usage.ts";

/** Processor time; all values only ever grow. */
export interface CpuUsage {
  readonly usageNanoseconds: number;
  readonly userNanoseconds: number | undefined;
  readonly systemNanoseconds: number | undefined;
}

/** How often a limit on the processor took hold; undefined fields where there is no limit. */
export interface CpuThrottling {
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledNanoseconds: number;
}

export interface MemoryUsage {
  readonly usageBytes: number;
  readonly workingSetBytes: number;
  readonly rssBytes: number;
  readonly cacheBytes: number;
  readonly mappedFileBytes: number;
  readonly activeFileBytes: number;
  readonly inactiveFileBytes: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  /** Of the cgroup itself, without those below it; undefined where the kernel does not tell them apart. */
  readonly ownPageFaults: { readonly minor: number; readonly major: number } | undefined;
  /** What the kernel uses for it; undefined: the details tell. */
  readonly kernelBytes: number | undefined;
  readonly swapBytes: number;
  /** undefined: unlimited. */
  readonly limitBytes: number | undefined;
  readonly swapLimitBytes: number | undefined;
}

/** Time lost waiting for a resource: by some of the processes, and by all at once. */
export interface Pressure {
  readonly some: PressureShare;
  readonly full: PressureShare;
}

export interface PressureShare {
  readonly totalMicroseconds: number;
  /** Percent. */
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
}

export interface DeviceIo {
  readonly major: number;
  readonly minor: number;
  readonly readBytes: number;
  readonly writeBytes: number;
  readonly reads: number;
  readonly writes: number;
}

/** What a cgroup and all below it use. */
export interface CgroupUsage {
  readonly cpu: CpuUsage | undefined;
  readonly memory: MemoryUsage | undefined;
}

/** The two figures that change, at half the cost of all that is used: for whoever asks often. */
export interface CgroupGlance {
  readonly cpuNanoseconds: number | undefined;
  readonly workingSetBytes: number | undefined;
}

/** More of it, for those who want to know it all. */
export interface CgroupDetails {
  readonly throttling: CpuThrottling | undefined;
  readonly cpuShares: number | undefined;
  readonly cpuPeriodMicroseconds: number | undefined;
  /** undefined: no limit. */
  readonly cpuQuotaMicroseconds: number | undefined;
  readonly memoryPeakBytes: number | undefined;
  readonly memoryFailures: number | undefined;
  readonly memoryKernelBytes: number | undefined;
  readonly memoryReservationBytes: number | undefined;
  /** As the kernel has it: in version 1 of memory and swap together, in version 2 of swap alone. */
  readonly memorySwapLimitBytes: number | undefined;
  readonly oomKills: number | undefined;
  readonly io: readonly DeviceIo[];
  readonly tasks: number | undefined;
  readonly tasksLimit: number | undefined;
}

export interface Pressures {
  readonly cpu: Pressure | undefined;
  readonly memory: Pressure | undefined;
  readonly io: Pressure | undefined;
}

/** Reads what cgroups use. Paths are those inside the hierarchy, `/` its top; reading never waits. */
export interface CgroupReader {
  exists(path: string): boolean;
  /** Names of the cgroups directly below. */
  children(path: string): readonly string[];
  usage(path: string): CgroupUsage;
  glance(path: string): CgroupGlance;
  memory(path: string): MemoryUsage | undefined;
  /** Processes and threads in it and below it; undefined where the kernel does not count them. */
  tasks(path: string): number | undefined;
  details(path: string): CgroupDetails;
  /** How many of its processes the kernel killed for want of memory; undefined: unknown. */
  oomKills(path: string): number | undefined;
  /** undefined where the kernel does not measure it. */
  pressures(path: string): Pressures | undefined;
  /** Processes directly in it. */
  processes(path: string): readonly number[];
  /** When it was made, in milliseconds since 1970; undefined: unknown. */
  createdAt(path: string): number | undefined;
}

/** `root` is where the host's file system is, for tests. */
export function cgroupReader(layout: CgroupLayout, root = ""): CgroupReader {
  return layout.version === 2
    ? new CgroupV2Usage(`${root}${layout.mountPoint}`, root)
    : new CgroupV1Usage(layout.mountPoints, root);
}
