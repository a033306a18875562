import { type ObservedResources, sharesOfWeight, weightOfShares } from "../../ground/model/index.ts";

/** The text of a control file; empty where the kernel does not have the controller. */
type ReadControl = (controller: string, file: string) => Promise<string>;

export async function resourcesV1(read: ReadControl): Promise<ObservedResources> {
  return {
    cpuShares: numberIn(await read("cpu", "cpu.shares")),
    cpuQuota: numberIn(await read("cpu", "cpu.cfs_quota_us")),
    cpuPeriod: numberIn(await read("cpu", "cpu.cfs_period_us")),
    memoryLimitBytes: bytesIn(await read("memory", "memory.limit_in_bytes")),
  };
}

export async function resourcesV2(read: ReadControl, meantShares: number): Promise<ObservedResources> {
  const [quota = "", period = ""] = (await read("cpu", "cpu.max")).split(" ");
  const weight = numberIn(await read("cpu", "cpu.weight"));
  return {
    cpuShares: weight === weightOfShares(meantShares) ? meantShares : sharesOfWeight(weight),
    cpuQuota: numberIn(quota),
    cpuPeriod: numberIn(period),
    memoryLimitBytes: bytesIn(await read("memory", "memory.max")),
  };
}

/** Where nothing is limited there is no number, or -1. */
function numberIn(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : 0;
}

/** A limit that the kernel can't count up to is none. */
function bytesIn(text: string): bigint {
  const bytes = /^\d+$/.test(text) ? BigInt(text) : 0n;
  return bytes < unlimited ? bytes : 0n;
}

const unlimited = 2n ** 62n;
