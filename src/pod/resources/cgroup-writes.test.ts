import assert from "node:assert/strict";
import { test } from "node:test";
import type { CgroupValues } from "./cgroup-values.ts";
import { cgroupWrites } from "./cgroup-writes.ts";

const everything: CgroupValues = {
  cpuShares: 512,
  cpuQuota: { quotaUs: 50_000, periodUs: 100_000 },
  memoryLimitBytes: 1n << 40n,
  memoryMinBytes: 1n << 20n,
  pidsLimit: 100,
  hugePages: new Map([[2n << 20n, 4n << 20n]]),
  cpus: "0-3",
};

function written(values: CgroupValues, version: 1 | 2): string[] {
  return cgroupWrites(values, version).map(({ controller, file, text }) => `${controller} ${file} ${text}`);
}

test("cgroup v1, everything, in order", () => {
  assert.deepEqual(written(everything, 1), [
    "pids pids.max 100",
    "memory memory.limit_in_bytes 1099511627776",
    "cpu cpu.shares 512",
    "cpu cpu.cfs_period_us 100000",
    "cpu cpu.cfs_quota_us 50000",
    "cpuset cpuset.cpus 0-3",
    "hugetlb hugetlb.2MB.limit_in_bytes 4194304",
    "hugetlb hugetlb.2MB.rsvd.limit_in_bytes 4194304",
  ]);
});

test("cgroup v2, everything, in order", () => {
  assert.deepEqual(written(everything, 2), [
    "pids pids.max 100",
    "memory memory.max 1099511627776",
    "cpu cpu.weight 20",
    "cpu cpu.max 50000 100000",
    "cpuset cpuset.cpus 0-3",
    "hugetlb hugetlb.2MB.max 4194304",
    "hugetlb hugetlb.2MB.rsvd.max 4194304",
    "memory memory.min 1048576",
  ]);
});

test("what is not set is not touched", () => {
  assert.deepEqual(written({}, 1), []);
  assert.deepEqual(written({}, 2), []);
});

test("no limit in words of the kernel", () => {
  const unlimited: CgroupValues = { cpuQuota: { quotaUs: -1, periodUs: 100_000 }, pidsLimit: -1 };
  assert.deepEqual(written(unlimited, 1), [
    "pids pids.max max",
    "cpu cpu.cfs_period_us 100000",
    "cpu cpu.cfs_quota_us -1",
  ]);
  assert.deepEqual(written(unlimited, 2), ["pids pids.max max", "cpu cpu.max max 100000"]);
});
