import type { Clock, Logger } from "../base/index.ts";
import { type AgentConfig, reservedResources } from "../config/index.ts";
import { type CgroupLayout, type Machine, readPidLimit } from "../host/index.ts";
import { amountsOf, type IdentifiedPod } from "../model/index.ts";
import { CgroupTree, kernelCgroupFiles, limitPods, limitReserved, PodCgroups } from "../resources/index.ts";
import type { NodeContext } from "../runtime/index.ts";

/** Makes the cgroups that all pods live below, and limits what they may use together. */
export async function startCgroups(parts: {
  readonly config: AgentConfig;
  readonly node: NodeContext;
  readonly layout: CgroupLayout;
  readonly machine: Machine;
  readonly clock: Clock;
  readonly log: Logger;
  readonly activePods: () => readonly IdentifiedPod[];
}): Promise<PodCgroups> {
  const { node, machine, log, clock, activePods } = parts;
  const { kubelet } = parts.config;
  const tree = new CgroupTree(parts.layout, kernelCgroupFiles, clock);
  const cgroups = new PodCgroups(
    node.cgroups,
    {
      cpuCfsQuota: kubelet.cpuCFSQuota,
      cpuPeriodUs: kubelet.cpuCFSQuotaPeriodMs * 1000,
      podPidsLimit: kubelet.podPidsLimit,
      memoryQos: node.memoryQos !== undefined,
      hugePageSizes: node.hugePageSizes,
    },
    { tree, log, activePods, hasExclusiveCpus: () => false },
  );
  await cgroups.createTiers();
  if (!node.cgroups.perQos) return cgroups;
  // systemReserved and kubeReserved, as reservedSystemCPUs changes them.
  const reserved = reservedResources(kubelet);
  const share = {
    enforce: kubelet.enforceNodeAllocatable,
    systemReservedCgroup: kubelet.systemReservedCgroup,
    kubeReservedCgroup: kubelet.kubeReservedCgroup,
    capacity: amountsOf({
      cpu: String(machine.cpus.logical),
      memory: String(machine.memoryBytes),
      pid: String(await readPidLimit()),
    }),
    systemReserved: new Map(Object.entries(reserved.system)),
    kubeReserved: new Map(Object.entries(reserved.kube)),
    hugePageSizes: node.hugePageSizes,
  };
  try {
    await limitPods(tree, node.cgroups, share);
  } catch (error) {
    // Pods that already use more than the new limit must not keep the agent from managing them.
    log.error("Could not limit what all pods together may use", error);
  }
  await limitReserved(tree, node.cgroups, share);
  return cgroups;
}
