import type { ContainerStats, RuntimeService } from "../../../connections/cri/index.ts";
import type { Clock } from "../../../ground/base/index.ts";
import type { PodFigures } from "./usage-figures.ts";
import type { UsageSample, UsageSampler } from "./usage-sampler.ts";

/** Where a container's cgroup can't be found, what the runtime says of it has to do. */
export async function withRuntimeSamples(
  pods: readonly PodFigures[],
  ports: {
    readonly runtime: Pick<RuntimeService, "listContainerStats">;
    readonly sampler: UsageSampler;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): Promise<readonly PodFigures[]> {
  const { stats } = await ports.runtime.listContainerStats({ filter: undefined }, { signal });
  const byId = new Map(stats.map((each) => [each.attributes?.id ?? "", each]));
  return pods.map((pod) => ({
    ...pod,
    containers: pod.containers.map((container) => {
      const told = byId.get(container.id);
      return container.sample !== undefined || told === undefined
        ? container
        : { ...container, sample: sampleOf(told, container.id, ports) };
    }),
  }));
}

function sampleOf(
  { cpu, memory, swap }: ContainerStats,
  id: string,
  { sampler, clock }: { readonly sampler: UsageSampler; readonly clock: Clock },
): UsageSample {
  const value = (field: { readonly value: bigint } | undefined): number => Number(field?.value ?? 0n);
  const workingSetBytes = value(memory?.workingSetBytes);
  const available = memory?.availableBytes;
  const usageNanoseconds = value(cpu?.usageCoreNanoSeconds);
  return {
    path: "",
    at: cpu === undefined ? clock.now() : Number(cpu.timestamp / 1_000_000n),
    cpu: cpu && { usageNanoseconds, userNanoseconds: undefined, systemNanoseconds: undefined },
    nanoCores: cpu?.usageNanoCores === undefined ? sampler.rateOf(id, usageNanoseconds) : value(cpu.usageNanoCores),
    memory: memory && {
      usageBytes: value(memory.usageBytes) || workingSetBytes,
      workingSetBytes,
      rssBytes: value(memory.rssBytes),
      cacheBytes: 0,
      mappedFileBytes: 0,
      activeFileBytes: 0,
      inactiveFileBytes: 0,
      pageFaults: value(memory.pageFaults),
      majorPageFaults: value(memory.majorPageFaults),
      ownPageFaults: undefined,
      kernelBytes: undefined,
      swapBytes: value(swap?.swapUsageBytes),
      limitBytes: available === undefined || available.value === 0n ? undefined : workingSetBytes + value(available),
      swapLimitBytes: undefined,
    },
    pressures: undefined,
  };
}
