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

/** What stays of `usage` when the kernel drops all copies of files; `figures` is memory.stat. */
export function heldMemory(usage: bigint, figures: string, version: 1 | 2): bigint {
  // Version 1 counts a cgroup by itself, and those below only in the totals.
  const names = ["active_file", "inactive_file"].map((name) => (version === 1 ? `total_${name}` : name));
  const files = names.map((name) => bytesIn(new RegExp(`^${name} (\\d+)$`, "m").exec(figures)?.[1] ?? ""));
  const held = files.reduce((left, bytes) => left - bytes, usage);
  return held > 0n ? held : 0n;
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
