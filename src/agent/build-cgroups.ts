import { reservedResources } from "../ground/config/index.ts";
import { amountsOf, uidOf } from "../ground/model/index.ts";
import { type NodeAllocatableSettings, NodeCgroups, type Placement } from "../pod/resources/index.ts";
import type { NodeContext } from "../pod/runtime/index.ts";
import { hasWhatWasPromised } from "../pod/workers/index.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

export function buildCgroups(
  base: Foundation,
  context: NodeContext,
  { sight, placement }: { readonly sight: PodSight; readonly placement: Placement },
): NodeCgroups {
  const { config, host, clock, log, process, scope } = base;
  const { kubelet } = config;
  return new NodeCgroups(
    scope,
    {
      pod: {
        cpuCfsQuota: kubelet.cpuCFSQuota,
        cpuPeriodUs: kubelet.cpuCFSQuotaPeriodMs * 1000,
        podPidsLimit: kubelet.podPidsLimit,
        memoryQos: context.memoryQos !== undefined,
        hugePageSizes: context.hugePageSizes,
      },
      share: shareOf(base),
    },
    {
      layout: host.facts.cgroups,
      files: host.cgroupFiles,
      findSystemd: host.findSystemd,
      clock,
      log,
      environment: process.environment,
      naming: () => context.cgroups,
      activePods: () => sight.table.activePods(),
      arePodsKnown: sight.arePodsKnown,
      isSettled: (pod) => {
        const uid = uidOf(pod);
        return hasWhatWasPromised(pod, sight.observer.latest(uid), sight.actuations.givenTo(uid));
      },
      hasExclusiveCpus: (pod) => placement.hasExclusiveCpus(uidOf(pod)),
      podsToKeep: sight.podsToKeep,
    },
  );
}

function shareOf({ config, host }: Foundation): NodeAllocatableSettings {
  const { kubelet } = config;
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
  };
}
