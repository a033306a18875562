import { exemptionOf, type NodePressure } from "../node/eviction/index.ts";
import {
  Admission,
  appArmorHandler,
  deviceHandler,
  groupsPolicyHandler,
  hostNamespaceHandler,
  hostPortsHandler,
  type JudgingNode,
  nodeFitHandler,
  osHandler,
  placementHandler,
  podLevelHandler,
  pressureHandler,
  shutdownHandler,
  sysctlHandler,
} from "../pod/registry/index.ts";
import type { NodeResources, Placement } from "../pod/resources/index.ts";
import { normalSysctlName, type RuntimeStatus } from "../pod/runtime/index.ts";
import type { DeviceParts } from "./build-devices.ts";
import type { JudgedBy } from "./build-node-parts.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

/** Whether the node takes a pod. */
export function buildAdmission(
  { config, host, process }: Foundation,
  parts: {
    readonly known: JudgedBy | undefined;
    readonly resources: NodeResources;
    readonly devices: DeviceParts;
    readonly placement: Placement;
    readonly sight: PodSight;
    readonly isShuttingDown: () => boolean;
    readonly pressure: NodePressure;
  },
): Admission {
  const { known, resources, devices, placement, sight, pressure } = parts;
  const isStandalone = known === undefined;
  const { machine, appArmorEnabled } = host.facts;
  return new Admission([
    pressureHandler({
      conditions: () => pressure.conditions,
      isCritical: (pod) => exemptionOf(pod, isStandalone) !== undefined,
      // Nobody would make another one.
      mayWait: isStandalone,
    }),
    hostNamespaceHandler(process.environment),
    sysctlHandler({
      allowedUnsafe: config.kubelet.allowedUnsafeSysctls,
      kernelVersion: machine.kernelVersion,
      normalName: normalSysctlName,
    }),
    deviceHandler({ ...devices, ...sight }, placementHandler(placement)),
    ...(known === undefined
      ? []
      : [nodeFitHandler({ node: () => judgingNode(known), allocatable: () => resources.allocatable() })]),
    hostPortsHandler,
    appArmorHandler(appArmorEnabled),
    podLevelHandler(config.gates.enabled("PodLevelResources")),
    osHandler,
    groupsPolicyHandler(() => supportsStrictGroups(sight.runtimeStatus)),
    shutdownHandler(parts.isShuttingDown),
  ]);
}

function judgingNode({ knowledge }: JudgedBy): JudgingNode | undefined {
  return knowledge && { node: knowledge.node, isConfirmed: knowledge.from === "api" };
}

function supportsStrictGroups({ answeredAt, features }: RuntimeStatus): boolean | undefined {
  return answeredAt === undefined ? undefined : features?.supplementalGroupsPolicy === true;
}
