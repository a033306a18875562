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

/** How much the container may swap: as much of all swap as it requests of all memory. */
export function swapBytes(pod: IdentifiedPod, container: Container, settings: ResourceSettings): bigint {
  const { swap, memoryCapacityBytes } = settings;
  const request = amountsOf(container.resources?.requests).get("memory") ?? 0n;
  const limit = amountsOf(container.resources?.limits).get("memory") ?? 0n;
  const qualifies =
    swap.behavior === "LimitedSwap" && !isCriticalPod(pod) && qosClassOf(pod) === "Burstable" && request !== limit;
  const bytes = wholeUnits(request);
  // Who asks for more than there is could be promised more swap than there is.
  if (!qualifies || bytes === 0n || bytes > memoryCapacityBytes) return 0n;
  // Not exact, on purpose: the kubelet counts so, and a container must not change when the other agent takes over.
  return BigInt(Math.trunc((Number(bytes) / Number(memoryCapacityBytes)) * Number(swap.capacityBytes)));
}
