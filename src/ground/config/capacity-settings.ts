import { addAmounts, type CapacitySettings } from "../model/index.ts";
import type { AgentConfig } from "./agent-config.ts";
import { type EvictionAmount, parseEvictionThreshold } from "./text/eviction-text.ts";
import { reservedResources } from "./text/reserved.ts";

/** What the configuration says about how much of the machine pods may use: for status, admission and pods alike. */
export function capacitySettingsOf({ kubelet, flags }: AgentConfig): CapacitySettings {
  const { system, kube } = reservedResources(kubelet);
  const hard = flags.experimentalAllocatableIgnoreEviction ? {} : kubelet.evictionHard;
  const memory = thresholdOf(hard["memory.available"]);
  const nodefs = thresholdOf(hard["nodefs.available"]);
  return {
    maxPods: kubelet.maxPods,
    podsPerCore: kubelet.podsPerCore,
    localStorageIsolation: kubelet.localStorageCapacityIsolation,
    reserved: addAmounts(new Map(Object.entries(system)), new Map(Object.entries(kube))),
    hardEviction: { ...(memory !== undefined && { memory }), ...(nodefs !== undefined && { nodefs }) },
  };
}

function thresholdOf(text: string | undefined): EvictionAmount | undefined {
  if (text === undefined) return undefined;
  const threshold = parseEvictionThreshold(text);
  return threshold === "off" ? undefined : threshold;
}
