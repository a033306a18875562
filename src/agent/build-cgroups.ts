import type { Recorders } from "../connections/kube/index.ts";
import { qosReservedPercent } from "../ground/config/index.ts";
import { uidOf } from "../ground/model/index.ts";
import {
  type ClassReserve,
  memoryForPods,
  type NodeAllocatableSettings,
  NodeCgroups,
  nodeShareOf,
  type Placement,
} from "../pod/resources/index.ts";
import type { NodeContext } from "../pod/runtime/index.ts";
import { hasWhatWasPromised } from "../pod/workers/index.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

export function buildCgroups(
  base: Foundation,
  context: NodeContext,
  { sight, placement, events }: { readonly sight: PodSight; readonly placement: Placement; readonly events: Recorders },
): NodeCgroups {
  const { config, host, clock, log, process, scope } = base;
  const { kubelet } = config;
  const share = nodeShareOf(config, host.facts);
  return new NodeCgroups(
    scope,
    {
      pod: {
        cpuCfsQuota: kubelet.cpuCFSQuota,
        cpuPeriodUs: kubelet.cpuCFSQuotaPeriodMs * 1000,
        podPidsLimit: kubelet.podPidsLimit,
        memoryQos: context.memoryQos !== undefined,
        hugePageSizes: context.hugePageSizes,
        memoryReserve: memoryReserve(base, share),
      },
      share,
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
      recordNodeEvent: events.node,
      podsInUse: sight.podsInUse,
    },
  );
}

function memoryReserve({ config }: Foundation, share: NodeAllocatableSettings): ClassReserve | undefined {
  const percent = qosReservedPercent(config.kubelet);
  if (percent === undefined || !config.gates.enabled("QOSReserved")) return undefined;
  return { percent, allocatable: memoryForPods(share) };
}
