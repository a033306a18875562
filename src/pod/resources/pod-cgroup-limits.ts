import {
  amountsOf,
  hugePageSizeOf,
  type IdentifiedPod,
  milliUnits,
  minShares,
  type Nano,
  podLevelAmounts,
  podResources,
  qosClassOf,
  quotaOfMilliCpu,
  type ResourceAmounts,
  sharesOfMilliCpu,
  wholeUnits,
} from "../../ground/model/index.ts";
import { atMostBytes, type CgroupValues, type CpuQuota } from "./cgroup-values.ts";
import type { TierSettings } from "./qos-cgroup-limits.ts";

export interface PodValueSettings extends TierSettings {
  /** False: CPU limits are not enforced. */
  readonly cpuCfsQuota: boolean;
  readonly cpuPeriodUs: number;
  /** No limit below 1. */
  readonly podPidsLimit: number;
}

/** What a pod's cgroup allows, `exclusiveCpus` meaning that a container of it owns CPUs and needs no quota. */
export function podValues(pod: IdentifiedPod, settings: PodValueSettings, exclusiveCpus: boolean): CgroupValues {
  const { requests, limits } = podResources(pod.spec, "with overhead");
  const common: CgroupValues = {
    ...(settings.podPidsLimit > 0 ? { pidsLimit: settings.podPidsLimit } : {}),
    ...hugePageValues(requests, settings.hugePageSizes),
  };
  const qos = qosClassOf(pod);
  if (qos === "BestEffort") return { ...common, cpuShares: minShares };
  const declares = (resource: string): boolean => qos === "Guaranteed" || isLimitedThroughout(pod, resource);
  const memoryRequest = wholeUnits(requests.get("memory") ?? 0n);
  const memoryLimit = wholeUnits(limits.get("memory") ?? 0n);
  return {
    ...common,
    cpuShares: sharesOfMilliCpu(Number(milliUnits(requests.get("cpu") ?? 0n))),
    ...(declares("cpu") ? quotaValue(limits.get("cpu") ?? 0n, settings, exclusiveCpus) : {}),
    ...(declares("memory") && memoryLimit > 0n ? { memoryLimitBytes: atMostBytes(memoryLimit) } : {}),
    ...(settings.memoryQos && memoryRequest > 0n ? { memoryMinBytes: atMostBytes(memoryRequest) } : {}),
  };
}

/** A pod has a limit only if no container of it is without one, or it has one as a whole. */
function isLimitedThroughout({ spec }: IdentifiedPod, resource: string): boolean {
  if ((podLevelAmounts(spec, "limits").get(resource) ?? 0n) > 0n) return true;
  return [...spec.containers, ...(spec.initContainers ?? [])].every(
    (container) => (amountsOf(container.resources?.limits).get(resource) ?? 0n) > 0n,
  );
}

function quotaValue(limit: Nano, settings: PodValueSettings, exclusiveCpus: boolean): { readonly cpuQuota?: CpuQuota } {
  const periodUs = settings.cpuPeriodUs;
  if (!settings.cpuCfsQuota || exclusiveCpus) return { cpuQuota: { quotaUs: -1, periodUs } };
  const quotaUs = quotaOfMilliCpu(Number(milliUnits(limit)), periodUs);
  return quotaUs === 0 ? {} : { cpuQuota: { quotaUs, periodUs } };
}

/** Page sizes not asked for are limited to nothing. */
export function hugePageValues(
  amounts: ResourceAmounts,
  sizes: readonly bigint[],
): { readonly hugePages?: ReadonlyMap<bigint, bigint> } {
  if (sizes.length === 0) return {};
  const hugePages = new Map(sizes.map((size) => [size, 0n]));
  for (const [name, amount] of amounts) {
    const size = hugePageSizeOf(name);
    if (size !== undefined && hugePages.has(size)) hugePages.set(size, atMostBytes(wholeUnits(amount)));
  }
  return { hugePages };
}
