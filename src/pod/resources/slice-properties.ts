import type { UnitProperty } from "../../connections/host/index.ts";
import { weightOfShares } from "../../ground/model/index.ts";
import type { CgroupValues } from "./cgroup-values.ts";

/** systemd's word for "no limit". */
const infinity = 2n ** 64n - 1n;

/** systemd keeps a quota as whole percents of a CPU; rounded up, so that nobody gets less than was promised. */
const quotaStepUs = 10_000n;
const secondUs = 1_000_000n;

/** Since when systemd knows the property. */
const quotaPeriodSince = 242;
const allowedCpusSince = 244;

export interface SystemdFacts {
  readonly cgroupVersion: 1 | 2;
  readonly systemdVersion: number;
}

/** What systemd is told of `values`, as far as it has a word for it; the rest is for the control files alone. */
export function sliceProperties(values: CgroupValues, facts: SystemdFacts): readonly UnitProperty[] {
  const { pidsLimit, memoryLimitBytes, memoryMinBytes, cpuShares, cpuQuota, cpus } = values;
  const isV2 = facts.cgroupVersion === 2;
  const properties: UnitProperty[] = [];
  const add = (name: string, value: bigint): void => {
    // Containers add up to more than the bus has numbers for, where each asks for nearly all there can be.
    properties.push([name, { signature: "t", value: value < 0n || value > infinity ? infinity : value }]);
  };
  if (memoryLimitBytes !== undefined) add(isV2 ? "MemoryMax" : "MemoryLimit", memoryLimitBytes);
  if (memoryMinBytes !== undefined && isV2) add("MemoryMin", memoryMinBytes);
  if (cpuShares !== undefined && isV2) add("CPUWeight", BigInt(weightOfShares(cpuShares)));
  if (cpuShares !== undefined && !isV2) add("CPUShares", BigInt(cpuShares));
  if (cpuQuota !== undefined) {
    const { quotaUs, periodUs } = cpuQuota;
    if (facts.systemdVersion >= quotaPeriodSince) add("CPUQuotaPeriodUSec", BigInt(periodUs));
    add("CPUQuotaPerSecUSec", quotaUs <= 0 ? -1n : quotaPerSecond(BigInt(quotaUs), BigInt(periodUs)));
  }
  if (pidsLimit !== undefined && pidsLimit !== 0) add("TasksMax", BigInt(pidsLimit));
  if (cpus !== undefined && facts.systemdVersion >= allowedCpusSince) {
    properties.push(["AllowedCPUs", { signature: "ay", value: bitMap(cpus) }]);
  }
  return properties;
}

/** What makes a slice one of ours, besides its limits. */
export function newSliceProperties(
  unit: string,
  parent: string,
  { cgroupVersion }: SystemdFacts,
): readonly UnitProperty[] {
  const flag = (name: string, value: boolean): UnitProperty => [name, { signature: "b", value }];
  return [
    ["Description", { signature: "s", value: `Kubernetes pods (${unit})` }],
    ["Wants", { signature: "as", value: [parent] }],
    flag("MemoryAccounting", true),
    flag("CPUAccounting", true),
    flag(cgroupVersion === 2 ? "IOAccounting" : "BlockIOAccounting", true),
    flag("TasksAccounting", true),
    flag("DefaultDependencies", false),
  ];
}

function quotaPerSecond(quotaUs: bigint, periodUs: bigint): bigint {
  const perSecond = (quotaUs * secondUs) / periodUs;
  return ((perSecond + quotaStepUs - 1n) / quotaStepUs) * quotaStepUs;
}

/** `0-2,9` as systemd wants it: one bit for each CPU, the lowest first. */
function bitMap(list: string): Uint8Array {
  const cpus = list.split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
  const bytes = new Uint8Array(Math.floor(Math.max(...cpus) / 8) + 1);
  for (const cpu of cpus) bytes[cpu >> 3] = (bytes[cpu >> 3] ?? 0) | (1 << (cpu & 7));
  return bytes;
}
