import { hugePageUnit, weightOfShares } from "../../ground/model/index.ts";
import type { CgroupValues } from "./cgroup-values.ts";

/** One control file and what is written to it. */
export interface CgroupWrite {
  readonly controller: string;
  readonly file: string;
  readonly text: string;
  /** Skipped when this kernel has no such file. */
  readonly optional?: true;
  /** The kernel silently narrows this value, so what it kept must be compared. */
  readonly readBack?: true;
  /** The kernel keeps whole pages only, rounded down; none is larger than this. */
  readonly pageBytes?: bigint;
}

/** Memory is counted in pages, whose size depends on the kernel: 4, 16 or 64 KiB. */
const largestPageBytes = 64n << 10n;

/** The writes that make a cgroup allow `values`, in the order in which they are made. */
export function cgroupWrites(values: CgroupValues, version: 1 | 2): readonly CgroupWrite[] {
  return version === 1 ? writesV1(values) : writesV2(values);
}

function writesV1(values: CgroupValues): readonly CgroupWrite[] {
  const { pidsLimit, memoryLimitBytes, cpuShares, cpuQuota, cpus, hugePages } = values;
  const writes: CgroupWrite[] = [];
  if (pidsLimit !== undefined) writes.push({ controller: "pids", file: "pids.max", text: pidsText(pidsLimit) });
  if (memoryLimitBytes !== undefined) {
    writes.push({
      controller: "memory",
      file: "memory.limit_in_bytes",
      text: String(memoryLimitBytes),
      pageBytes: largestPageBytes,
    });
  }
  if (cpuShares !== undefined) {
    writes.push({ controller: "cpu", file: "cpu.shares", text: String(cpuShares), readBack: true });
  }
  if (cpuQuota !== undefined) {
    writes.push(
      { controller: "cpu", file: "cpu.cfs_period_us", text: String(cpuQuota.periodUs) },
      { controller: "cpu", file: "cpu.cfs_quota_us", text: String(cpuQuota.quotaUs) },
    );
  }
  if (cpus !== undefined) writes.push({ controller: "cpuset", file: "cpuset.cpus", text: cpus });
  for (const [size, bytes] of hugePages ?? []) {
    const prefix = `hugetlb.${hugePageUnit(size)}`;
    const text = String(bytes);
    writes.push(
      { controller: "hugetlb", file: `${prefix}.limit_in_bytes`, text, pageBytes: size },
      { controller: "hugetlb", file: `${prefix}.rsvd.limit_in_bytes`, text, pageBytes: size, optional: true },
    );
  }
  return writes;
}

function writesV2(values: CgroupValues): readonly CgroupWrite[] {
  const { pidsLimit, memoryLimitBytes, memoryMinBytes, cpuShares, cpuQuota, cpus, hugePages } = values;
  const writes: CgroupWrite[] = [];
  if (pidsLimit !== undefined) writes.push({ controller: "pids", file: "pids.max", text: pidsText(pidsLimit) });
  if (memoryLimitBytes !== undefined) {
    writes.push({
      controller: "memory",
      file: "memory.max",
      text: String(memoryLimitBytes),
      pageBytes: largestPageBytes,
    });
  }
  if (cpuShares !== undefined) {
    writes.push({ controller: "cpu", file: "cpu.weight", text: String(weightOfShares(cpuShares)) });
  }
  if (cpuQuota !== undefined) {
    const quota = cpuQuota.quotaUs < 0 ? "max" : String(cpuQuota.quotaUs);
    writes.push({ controller: "cpu", file: "cpu.max", text: `${quota} ${cpuQuota.periodUs}` });
  }
  if (cpus !== undefined) writes.push({ controller: "cpuset", file: "cpuset.cpus", text: cpus });
  for (const [size, bytes] of hugePages ?? []) {
    const prefix = `hugetlb.${hugePageUnit(size)}`;
    const text = String(bytes);
    writes.push(
      { controller: "hugetlb", file: `${prefix}.max`, text, pageBytes: size },
      { controller: "hugetlb", file: `${prefix}.rsvd.max`, text, pageBytes: size, optional: true },
    );
  }
  if (memoryMinBytes !== undefined) {
    writes.push({
      controller: "memory",
      file: "memory.min",
      text: String(memoryMinBytes),
      pageBytes: largestPageBytes,
    });
  }
  return writes;
}

function pidsText(limit: number): string {
  return limit < 0 ? "max" : String(limit);
}
