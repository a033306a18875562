import type { DirectoryUsage, InterfaceUsage, Pressure } from "../../../connections/host/index.ts";
import { apiTime } from "../../../ground/model/index.ts";
import type { FileSystemFigures } from "./file-system-figures.ts";
import type { VolumeReading } from "./ports.ts";
import type {
  CpuStats,
  FsStats,
  InterfaceStats,
  IoStats,
  MemoryStats,
  NetworkStats,
  PsiStats,
  SwapStats,
  VolumeStats,
} from "./summary-types.ts";
import type { UsageSample } from "./usage-sampler.ts";

/** RFC 3339 to the second; a time that is not known is null. */
export function timeText(ms: number): string | null {
  return ms <= 0 ? null : apiTime(ms);
}

/** The sections about processor, memory and swap. */
export function usageParts(sample: UsageSample | undefined): {
  readonly cpu?: CpuStats;
  readonly memory?: MemoryStats;
  readonly swap?: SwapStats;
} {
  if (sample === undefined) return {};
  const { at, cpu, memory, nanoCores, pressures } = sample;
  const time = apiTime(at);
  return {
    ...(cpu && {
      cpu: {
        time,
        usageNanoCores: nanoCores,
        usageCoreNanoSeconds: cpu.usageNanoseconds,
        psi: pressures && psiStats(pressures.cpu ?? noPressure),
      },
    }),
    ...(memory && {
      memory: {
        time,
        availableBytes: leftOf(memory.limitBytes, memory.workingSetBytes),
        usageBytes: memory.usageBytes,
        workingSetBytes: memory.workingSetBytes,
        rssBytes: memory.rssBytes,
        // As cAdvisor counts: those of the cgroup itself where the kernel tells them apart.
        pageFaults: memory.ownPageFaults?.minor ?? memory.pageFaults,
        majorPageFaults: memory.ownPageFaults?.major ?? memory.majorPageFaults,
        psi: pressures && psiStats(pressures.memory ?? noPressure),
      },
      swap: {
        time,
        swapAvailableBytes: leftOf(memory.swapLimitBytes, memory.swapBytes),
        swapUsageBytes: memory.swapBytes,
      },
    }),
  };
}

function leftOf(limit: number | undefined, used: number): number | undefined {
  return limit === undefined ? undefined : Math.max(0, limit - used);
}

export function ioPart(sample: UsageSample | undefined): { readonly io?: IoStats } {
  const psi = psiStats(sample?.pressures?.io);
  return sample === undefined || psi === undefined ? {} : { io: { time: apiTime(sample.at), psi } };
}

/** What is shown where the kernel measures none, as it does for cgroups of version 1. */
const never = { totalMicroseconds: 0, avg10: 0, avg60: 0, avg300: 0 };
const noPressure: Pressure = { full: never, some: never };

function psiStats(pressure: Pressure | undefined): PsiStats | undefined {
  if (pressure === undefined) return undefined;
  const share = ({ totalMicroseconds, ...averages }: Pressure["some"]) => ({
    total: totalMicroseconds * 1000,
    ...averages,
  });
  return { full: share(pressure.full), some: share(pressure.some) };
}

/** The interface that people mean by default is shown twice, as upstream does. */
export function networkStats(interfaces: readonly InterfaceUsage[], at: number): NetworkStats | undefined {
  if (interfaces.length === 0) return undefined;
  const all = interfaces.map(interfaceStats);
  return { time: apiTime(at), ...(all.find(({ name }) => name === "eth0") ?? { name: "" }), interfaces: all };
}

function interfaceStats({ name, rxBytes, rxErrors, txBytes, txErrors }: InterfaceUsage): InterfaceStats {
  return { name, rxBytes, rxErrors, txBytes, txErrors };
}

/** What something takes of a file system. */
export function fsStats(fileSystem: FileSystemFigures, used: DirectoryUsage, at: number): FsStats {
  return {
    time: apiTime(at),
    availableBytes: fileSystem.availableBytes,
    capacityBytes: fileSystem.capacityBytes,
    usedBytes: used.bytes,
    inodesFree: fileSystem.inodesFree,
    inodes: fileSystem.inodes,
    inodesUsed: used.inodes,
  };
}

/** A whole file system. */
export function wholeFsStats(fileSystem: FileSystemFigures, at: number): FsStats {
  const used = { bytes: fileSystem.usedBytes, inodes: fileSystem.inodes - fileSystem.inodesFree };
  return fsStats(fileSystem, used, at);
}

export function volumeStats({ name, usage, claim }: VolumeReading, at: number): VolumeStats {
  return {
    time: apiTime(at),
    availableBytes: Number(usage.availableBytes),
    capacityBytes: Number(usage.capacityBytes),
    usedBytes: Number(usage.usedBytes),
    inodesFree: Number(usage.inodesFree),
    inodes: Number(usage.inodes),
    inodesUsed: Number(usage.inodesUsed),
    name,
    ...(claim && { pvcRef: { name: claim.name, namespace: claim.namespace } }),
  };
}
