import assert from "node:assert/strict";
import { test } from "node:test";
import { isKept } from "./cgroup-compare.ts";
import type { CgroupValues } from "./cgroup-values.ts";
import { newSliceProperties, type SystemdFacts, sliceProperties } from "./slice-properties.ts";

const v2: SystemdFacts = { cgroupVersion: 2, systemdVersion: 252 };
const v1: SystemdFacts = { ...v2, cgroupVersion: 1 };
const infinity = 2n ** 64n - 1n;

const table: readonly (readonly [string, CgroupValues, SystemdFacts, Readonly<Record<string, unknown>>])[] = [
  ["nothing", {}, v2, {}],
  ["memory", { memoryLimitBytes: 536_870_912n, memoryMinBytes: 1n }, v2, { MemoryMax: 536_870_912n, MemoryMin: 1n }],
  ["memory on v1", { memoryLimitBytes: 536_870_912n, memoryMinBytes: 1n }, v1, { MemoryLimit: 536_870_912n }],
  ["memory without limit", { memoryLimitBytes: -1n }, v2, { MemoryMax: infinity }],
  ["more memory than systemd can count", { memoryLimitBytes: 24n * 10n ** 18n }, v2, { MemoryMax: infinity }],
  [
    "more CPUs than systemd can count",
    { cpuQuota: { quotaUs: 9e23, periodUs: 100_000 } },
    v2,
    { CPUQuotaPeriodUSec: 100_000n, CPUQuotaPerSecUSec: infinity },
  ],
  ["shares", { cpuShares: 512 }, v2, { CPUWeight: 20n }],
  ["the least shares", { cpuShares: 2 }, v2, { CPUWeight: 1n }],
  ["the most shares", { cpuShares: 262_144 }, v2, { CPUWeight: 10_000n }],
  ["shares on v1", { cpuShares: 512 }, v1, { CPUShares: 512n }],
  [
    "a whole CPU",
    { cpuQuota: { quotaUs: 100_000, periodUs: 100_000 } },
    v2,
    { CPUQuotaPeriodUSec: 100_000n, CPUQuotaPerSecUSec: 1_000_000n },
  ],
  [
    "a quota that is no whole percent is rounded up",
    { cpuQuota: { quotaUs: 33_300, periodUs: 100_000 } },
    v2,
    { CPUQuotaPeriodUSec: 100_000n, CPUQuotaPerSecUSec: 340_000n },
  ],
  [
    "the least quota",
    { cpuQuota: { quotaUs: 1_000, periodUs: 100_000 } },
    v2,
    { CPUQuotaPeriodUSec: 100_000n, CPUQuotaPerSecUSec: 10_000n },
  ],
  [
    "no quota",
    { cpuQuota: { quotaUs: -1, periodUs: 50_000 } },
    v2,
    { CPUQuotaPeriodUSec: 50_000n, CPUQuotaPerSecUSec: infinity },
  ],
  [
    "a systemd that knows no period",
    { cpuQuota: { quotaUs: 50_000, periodUs: 50_000 } },
    { ...v2, systemdVersion: 241 },
    { CPUQuotaPerSecUSec: 1_000_000n },
  ],
  ["processes", { pidsLimit: 4096 }, v2, { TasksMax: 4096n }],
  ["any number of processes", { pidsLimit: -1 }, v2, { TasksMax: infinity }],
  ["CPUs", { cpus: "0-15" }, v2, { AllowedCPUs: new Uint8Array([0xff, 0xff]) }],
  ["CPUs apart", { cpus: "0,9" }, v2, { AllowedCPUs: new Uint8Array([1, 2]) }],
  ["CPUs for a systemd that knows none", { cpus: "0" }, { ...v2, systemdVersion: 243 }, {}],
  ["huge pages have no word", { hugePages: new Map([[2n << 20n, 0n]]) }, v2, {}],
];
for (const [name, values, facts, expected] of table) {
  test(`systemd's words: ${name}`, () => {
    const properties = sliceProperties(values, facts).map(([property, { value }]) => [property, value]);
    assert.deepEqual(Object.fromEntries(properties), expected);
  });
}

test("what a new slice is told besides", () => {
  const told = (facts: SystemdFacts): unknown =>
    Object.fromEntries(newSliceProperties("a-b.slice", "a.slice", facts).map(([name, { value }]) => [name, value]));
  const common = {
    Description: "Kubernetes pods (a-b.slice)",
    Wants: ["a.slice"],
    MemoryAccounting: true,
    CPUAccounting: true,
    TasksAccounting: true,
    DefaultDependencies: false,
  };
  assert.deepEqual(told(v2), { ...common, IOAccounting: true });
  assert.deepEqual(told(v1), { ...common, BlockIOAccounting: true });
});

for (const { text, found, exact, raise, pageBytes } of [
  { text: "20", found: "20", exact: true, raise: true },
  { text: "20", found: "21", exact: false, raise: true },
  { text: "20", found: "19", exact: false, raise: false },
  { text: "1000", found: "max", exact: false, raise: true },
  { text: "max", found: "1000", exact: false, raise: false },
  { text: "33300 100000", found: "34000 100000", exact: false, raise: true },
  { text: "33300 100000", found: "max 100000", exact: false, raise: true },
  // 4 KiB pages.
  { text: "1000000001", found: "999997440", pageBytes: 65_536n, exact: true, raise: true },
  { text: "1000000001", found: "999000000", pageBytes: 65_536n, exact: false, raise: false },
  { text: "1000000001", found: "1000001536", pageBytes: 65_536n, exact: false, raise: true },
  { text: String(2n ** 63n), found: "max", pageBytes: 65_536n, exact: true, raise: true },
  { text: String(2n ** 70n), found: "max", exact: true, raise: true },
  { text: String(2n ** 70n), found: "9223372036854771712", pageBytes: 65_536n, exact: true, raise: true },
  { text: String(2n ** 70n), found: "1000000", pageBytes: 65_536n, exact: false, raise: false },
  { text: "3000000", found: "2097152", pageBytes: 2_097_152n, exact: true, raise: true },
]) {
  test(`a file that was given "${text}" and reads "${found}"`, () => {
    const write = { controller: "c", file: "f", text, ...(pageBytes === undefined ? {} : { pageBytes }) };
    assert.equal(isKept(write, found, "exact"), exact);
    assert.equal(isKept(write, found, "raise"), raise);
  });
}
