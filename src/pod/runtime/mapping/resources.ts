import { type HugepageLimit, LinuxContainerResources } from "../../../connections/cri/index.ts";
import {
  amountsOf,
  type Container,
  hugePageSizeOf,
  hugePageUnit,
  type IdentifiedPod,
  milliUnits,
  type Nano,
  podLevelAmounts,
  podResources,
  quotaOfMilliCpu,
  sharesOfMilliCpu,
  wholeUnits,
} from "../../../ground/model/index.ts";
import type { CpuAndMemoryPlacement, ResourceSettings } from "./context.ts";
import { memoryQosKeys } from "./memory-qos.ts";
import { oomScoreAdj } from "./oom-score.ts";
import { applySwap } from "./swap.ts";

/** What a container may use, complete: also sent when a running container is resized. */
export function containerResources(
  pod: IdentifiedPod,
  container: Container,
  settings: ResourceSettings,
  placement: CpuAndMemoryPlacement,
): LinuxContainerResources {
  const requests = amountsOf(container.resources?.requests);
  const limits = amountsOf(container.resources?.limits);
  const podLimits = podLevelAmounts(pod.spec, "limits");
  const resources = cpuAndMemory(
    {
      cpuRequest: requests.get("cpu"),
      cpuLimit: limits.get("cpu") || podLimits.get("cpu") || 0n,
      memoryLimit: limits.get("memory") || podLimits.get("memory") || 0n,
      exclusiveCpus: placement.exclusiveCpus,
    },
    settings,
  );
  resources.oomScoreAdj = BigInt(oomScoreAdj(pod, container, settings.memoryCapacityBytes));
  resources.hugepageLimits = hugePageLimits(new Map([...podLimits, ...limits]), settings.hugePageSizes);
  resources.cpusetCpus = placement.cpus;
  resources.cpusetMems = placement.memoryNodes;
  applySwap(resources, pod, container, settings);
  Object.assign(resources.unified, memoryQosKeys(container, settings));
  return resources;
}

/** What the sandbox may use for the pod as a whole, its own overhead not counted. */
export function sandboxResources(
  pod: IdentifiedPod,
  settings: ResourceSettings,
  exclusiveCpus: boolean,
): LinuxContainerResources {
  const { requests, limits } = podResources(pod.spec, "without overhead");
  return cpuAndMemory(
    {
      cpuRequest: requests.get("cpu"),
      cpuLimit: limits.get("cpu") ?? 0n,
      memoryLimit: limits.get("memory") ?? 0n,
      exclusiveCpus,
    },
    settings,
  );
}

/** What the sandbox itself costs; present and empty when the pod has no overhead. */
export function overheadResources(pod: IdentifiedPod, settings: ResourceSettings): LinuxContainerResources {
  if (pod.spec.overhead === undefined) return LinuxContainerResources.fromPartial({});
  const overhead = amountsOf(pod.spec.overhead);
  const cpu = overhead.get("cpu") ?? 0n;
  return cpuAndMemory(
    { cpuRequest: cpu, cpuLimit: cpu, memoryLimit: overhead.get("memory") ?? 0n, exclusiveCpus: false },
    settings,
  );
}

interface Claim {
  /** Undefined: nothing was requested, and the limit counts as the request. */
  readonly cpuRequest: Nano | undefined;
  readonly cpuLimit: Nano;
  readonly memoryLimit: Nano;
  readonly exclusiveCpus: boolean;
}

function cpuAndMemory(claim: Claim, settings: ResourceSettings): LinuxContainerResources {
  const cpuLimit = Number(milliUnits(claim.cpuLimit));
  const resources = LinuxContainerResources.fromPartial({
    cpuShares: BigInt(sharesOfMilliCpu(Number(milliUnits(claim.cpuRequest ?? claim.cpuLimit)))),
    memoryLimitInBytes: atMostInt64(wholeUnits(claim.memoryLimit)),
  });
  if (settings.cpuPeriodUs !== undefined) {
    const quota = claim.exclusiveCpus ? -1 : quotaOfMilliCpu(cpuLimit, settings.cpuPeriodUs);
    resources.cpuQuota = atMostInt64(BigInt(quota));
    resources.cpuPeriod = BigInt(settings.cpuPeriodUs);
  }
  if (settings.cgroupVersion === 2 && !settings.singleProcessOomKill) resources.unified["memory.oom.group"] = "1";
  return resources;
}

/** Quantities have no end, and CRI has no room for more. */
const largestInt64 = 2n ** 63n - 1n;

function atMostInt64(amount: bigint): bigint {
  return amount < largestInt64 ? amount : largestInt64;
}

/** Every page size is limited, those not asked for to nothing. */
function hugePageLimits(limits: ReadonlyMap<string, Nano>, sizes: readonly bigint[]): HugepageLimit[] {
  const wanted = new Map<string, bigint>();
  for (const [name, amount] of limits) {
    const size = hugePageSizeOf(name);
    if (size !== undefined) wanted.set(hugePageUnit(size), atMostInt64(wholeUnits(amount)));
  }
  return sizes.map((size) => {
    const pageSize = hugePageUnit(size);
    return { pageSize, limit: wanted.get(pageSize) ?? 0n };
  });
}
