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
import type { NodeResources, Placement, PlacementTrial } from "../pod/resources/index.ts";
import { normalSysctlName, type RuntimeStatus } from "../pod/runtime/index.ts";
import type { DeviceParts } from "./build-devices.ts";
import type { JudgedBy } from "./build-node-parts.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

/** What pods are judged by. */
export interface JudgingParts {
  readonly known: JudgedBy | undefined;
  readonly resources: NodeResources;
  readonly devices: DeviceParts;
  readonly placement: Placement;
  readonly sight: PodSight;
  readonly isShuttingDown: () => boolean;
  readonly pressure: NodePressure;
}

/** The same judges, which give nothing away: what a pod would get it gets on trial. */
export interface AdmissionTrial {
  readonly admission: Admission;
  readonly placement: PlacementTrial;
}

export function admissionOnTrial(base: Foundation, parts: JudgingParts): AdmissionTrial {
  const { sight } = parts;
  const devices = parts.devices.onTrial();
  const placement = parts.placement.onTrial((numa) => [devices.provider(numa, (uid) => sight.isHere(uid))]);
  return { admission: buildAdmission(base, { ...parts, devices, placement }), placement };
}

/** Whether the node takes a pod. */
export function buildAdmission(
  { config, host, process }: Foundation,
  parts: Omit<JudgingParts, "devices" | "placement"> & {
    readonly devices: Pick<DeviceParts, "manager" | "admission">;
    readonly placement: Pick<Placement, "give">;
  },
): Admission {
  const { known, resources, devices, placement, sight, pressure } = parts;
  const isStandalone = known === undefined;
  const { machine, appArmorEnabled } = host.facts;
  return new Admission({
    pressure: pressureHandler({
      conditions: () => pressure.conditions,
      isCritical: (pod) => exemptionOf(pod, isStandalone) !== undefined,
      // Nobody would make another one.
      mayWait: isStandalone,
    }),
    "host namespaces": hostNamespaceHandler(process.environment),
    sysctls: sysctlHandler({
      allowedUnsafe: config.kubelet.allowedUnsafeSysctls,
      kernelVersion: machine.kernelVersion,
      normalName: normalSysctlName,
    }),
    "CPUs, memory and devices": deviceHandler({ ...devices, ...sight }, placementHandler(placement)),
    ...(known && {
      "node fit": nodeFitHandler({ node: () => judgingNode(known), allocatable: () => resources.allocatable() }),
    }),
    "host ports": hostPortsHandler,
    AppArmor: appArmorHandler(appArmorEnabled),
    "pod-level resources": podLevelHandler(config.gates.enabled("PodLevelResources")),
    "operating system": osHandler,
    "supplemental groups": groupsPolicyHandler(() => supportsStrictGroups(sight.runtimeStatus)),
    shutdown: shutdownHandler(parts.isShuttingDown),
  });
}

function judgingNode({ knowledge }: JudgedBy): JudgingNode | undefined {
  return knowledge && { node: knowledge.node, isConfirmed: knowledge.from === "api" };
}

function supportsStrictGroups({ answeredAt, features }: RuntimeStatus): boolean | undefined {
  return answeredAt === undefined ? undefined : features?.supplementalGroupsPolicy === true;
}
