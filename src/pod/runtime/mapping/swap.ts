import type { LinuxContainerResources } from "../../../connections/cri/index.ts";
import {
  amountsOf,
  type Container,
  type IdentifiedPod,
  isCriticalPod,
  qosClassOf,
  wholeUnits,
} from "../../../ground/model/index.ts";
import type { ResourceSettings } from "./context.ts";

/** Says how much swap a container may use: none, unless the node shares its swap out and the container qualifies. */
export function applySwap(
  resources: LinuxContainerResources,
  pod: IdentifiedPod,
  container: Container,
  settings: ResourceSettings,
): void {
  if (!settings.swap.controllable) return;
  if (settings.cgroupVersion === 1) resources.memorySwapLimitInBytes = resources.memoryLimitInBytes;
  else resources.unified["memory.swap.max"] = String(swapBytes(pod, container, settings));
}

/** In proportion to the container's memory request. */
/** How much the container may swap. */
export function swapBytes(pod: IdentifiedPod, container: Container, settings: ResourceSettings): bigint {
  const { swap, memoryCapacityBytes } = settings;
  const request = amountsOf(container.resources?.requests).get("memory") ?? 0n;
  const limit = amountsOf(container.resources?.limits).get("memory") ?? 0n;
  const qualifies =
    swap.behavior === "LimitedSwap" && !isCriticalPod(pod) && qosClassOf(pod) === "Burstable" && request !== limit;
  if (!qualifies) return 0n;
  return (wholeUnits(request) * swap.capacityBytes) / memoryCapacityBytes;
}
