import { reservedResources } from "../ground/config/index.ts";
import { amountsOf } from "../ground/model/index.ts";
import type { NodeAllocatableSettings } from "../pod/resources/index.ts";
import type { Foundation } from "./foundation.ts";

/** What all pods may use of the machine, and what is kept from them. */
export function shareOf({ config, host }: Foundation): NodeAllocatableSettings {
  const { kubelet, gates } = config;
  const { machine, pidLimit, hugePageSizes } = host.facts;
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
