/** From here on the kernel counts no further and says "max"; of larger numbers it would take the last digits. */
export const mostBytes = 2n ** 63n - 1n;

export function atMostBytes(bytes: bigint): bigint {
  return bytes < mostBytes ? bytes : mostBytes;
}

/** What a cgroup allows. A value that is not set is left as the kernel has it. */
export interface CgroupValues {
  readonly cpuShares?: number;
  readonly cpuQuota?: CpuQuota;
  readonly memoryLimitBytes?: bigint;
  /** Kept for the cgroup even when memory is scarce; cgroup v2 only. */
  readonly memoryMinBytes?: bigint;
  readonly pidsLimit?: number;
  /** Bytes by page size in bytes. */
  readonly hugePages?: ReadonlyMap<bigint, bigint>;
  /** In the kernel's list form. */
  readonly cpus?: string;
}

/** The values one by one. */
export function singleValues(values: CgroupValues): readonly CgroupValues[] {
  return (Object.keys(values) as (keyof CgroupValues)[]).map((key) => ({ [key]: values[key] }));
}

export interface CpuQuota {
  /** Microseconds per period, or -1 for no limit. */
  readonly quotaUs: number;
  readonly periodUs: number;
}
