import { LinuxContainerResources } from "../../../connections/cri/index.ts";
import type { EngineResources } from "../engine/index.ts";

/**
 * Numbers of JSON are exact up to 2^53; what is larger is no limit that a machine could reach. A limit of 8Ei would be
 * rounded to more than Docker's 64 bits hold, and refused.
 */
const largest = BigInt(Number.MAX_SAFE_INTEGER);

function numberOf(value: bigint): number {
  return Number(value > largest ? largest : value);
}

/** What limits Docker sets. Memory and swap together are as much as memory: no swap. */
export function limitFields(resources: LinuxContainerResources | undefined, lowestOomScore: number): object {
  if (resources === undefined) return {};
  const { memoryLimitInBytes, cpuShares, cpuQuota, cpuPeriod, cpusetCpus, cpusetMems, oomScoreAdj } = resources;
  return {
    ...memoryFields(memoryLimitInBytes),
    ...(cpuShares !== 0n && { CpuShares: numberOf(cpuShares) }),
    ...(cpuQuota !== 0n && { CpuQuota: numberOf(cpuQuota) }),
    ...(cpuPeriod !== 0n && { CpuPeriod: numberOf(cpuPeriod) }),
    ...(cpusetCpus !== "" && { CpusetCpus: cpusetCpus }),
    ...(cpusetMems !== "" && { CpusetMems: cpusetMems }),
    OomScoreAdj: Math.max(numberOf(oomScoreAdj), lowestOomScore),
  };
}

/** For an update: zero means unchanged, and Docker has no way to change the score of a process. */
export function updateFields(resources: LinuxContainerResources | undefined): object {
  if (resources === undefined) return {};
  const { OomScoreAdj: _, ...fields } = limitFields(resources, 0) as Record<string, unknown>;
  return fields;
}

function memoryFields(limit: bigint): object {
  return limit === 0n ? {} : { Memory: numberOf(limit), MemorySwap: numberOf(limit) };
}

/** The same in CRI's words. */
export function limitsOf(engine: EngineResources): LinuxContainerResources {
  return LinuxContainerResources.fromPartial({
    memoryLimitInBytes: BigInt(engine.memory),
    memorySwapLimitInBytes: BigInt(Math.max(engine.memorySwap, 0)),
    cpuShares: BigInt(engine.cpuShares),
    cpuQuota: BigInt(engine.cpuQuota),
    cpuPeriod: BigInt(engine.cpuPeriod),
    cpusetCpus: engine.cpusetCpus,
    cpusetMems: engine.cpusetMems,
    oomScoreAdj: BigInt(engine.oomScoreAdj),
  });
}

/** What the driver of cgroups wants: a path, or with systemd the name of a slice. */
export function cgroupParentFor(parent: string, driver: string): string {
  return driver === "systemd" ? (parent.split("/").at(-1) ?? "") : parent;
}
