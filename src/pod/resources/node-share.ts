import { type AgentConfig, reservedResources } from "../../ground/config/index.ts";
import { amountsOf } from "../../ground/model/index.ts";
import type { NodeAllocatableSettings } from "./node-allocatable.ts";

/** The machine, as far as it is shared out. */
interface SharedMachine {
  readonly machine: { readonly cpus: { readonly logical: number }; readonly memoryBytes: number };
  readonly pidLimit: number;
  readonly hugePageSizes: readonly bigint[];
}

/** What all pods may use of the machine, and what is kept from them. */
export function nodeShareOf(
  { kubelet, gates }: AgentConfig,
  { machine, pidLimit, hugePageSizes }: SharedMachine,
): NodeAllocatableSettings {
  // systemReserved and kubeReserved, as reservedSystemCPUs changes them.
  const reserved = reservedResources(kubelet);
  return {
    enforce: kubelet.enforceNodeAllocatable,
    systemReservedCgroup: kubelet.systemReservedCgroup,
    kubeReservedCgroup: kubelet.kubeReservedCgroup,
    capacity: amountsOf({
      cpu: String(machine.cpus.logical),
      memory: String(machine.memoryBytes),
      pid: String(pidLimit),
    }),
    systemReserved: new Map(Object.entries(reserved.system)),
    kubeReserved: new Map(Object.entries(reserved.kube)),
    hugePageSizes,
    memoryQos: gates.enabled("MemoryQoS"),
  };
}
