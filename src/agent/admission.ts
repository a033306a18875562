import type { IdentifiedPod } from "../ground/model/index.ts";
import {
  Admission,
  appArmorHandler,
  groupsPolicyHandler,
  hostNamespaceHandler,
  hostPortsHandler,
  type JudgingNode,
  nodeFitHandler,
  osHandler,
  sysctlHandler,
} from "../pod/registry/index.ts";
import type { NodeResources } from "../pod/resources/index.ts";
import { type KnownServices, normalSysctlName, type RuntimeStatus } from "../pod/runtime/index.ts";
import type { Cluster } from "./cluster.ts";
import type { Foundation } from "./foundation.ts";
import type { JudgedBy } from "./node-context.ts";

/** Whether the node takes a pod. */
export function buildAdmission(
  { config, host, process }: Foundation,
  parts: {
    readonly known: JudgedBy | undefined;
    readonly resources: NodeResources;
    readonly runtimeStatus: RuntimeStatus;
  },
): Admission {
  const { known, resources, runtimeStatus } = parts;
  const { machine, appArmorEnabled } = host.facts;
  return new Admission([
    hostNamespaceHandler(process.environment),
    sysctlHandler({
      allowedUnsafe: config.kubelet.allowedUnsafeSysctls,
      kernelVersion: machine.kernelVersion,
      normalName: normalSysctlName,
    }),
    ...(known === undefined
      ? []
      : [nodeFitHandler({ node: () => judgingNode(known), allocatable: () => resources.allocatable() })]),
    hostPortsHandler,
    appArmorHandler(appArmorEnabled),
    osHandler,
    groupsPolicyHandler(() => supportsStrictGroups(runtimeStatus)),
  ]);
}

function judgingNode({ knowledge }: JudgedBy): JudgingNode | undefined {
  return knowledge && { node: knowledge.node, isConfirmed: knowledge.from === "api" };
}

function supportsStrictGroups({ answeredAt, features }: RuntimeStatus): boolean | undefined {
  return answeredAt === undefined ? undefined : features?.supplementalGroupsPolicy === true;
}

/** What containers are told of the cluster's services. */
export function knownServices(cluster: Cluster | undefined): () => KnownServices {
  if (cluster === undefined) return () => ({ state: "none" });
  const { services } = cluster;
  return () => (services.hasSynced ? { state: "read", services: services.list() } : { state: "unread" });
}

/** The runtime's handler that a pod's RuntimeClass names; throws while the class is unknown. */
export function runtimeHandlers(cluster: Cluster | undefined): (pod: IdentifiedPod) => string {
  return ({ spec: { runtimeClassName } }) => {
    if (runtimeClassName === undefined || runtimeClassName === "") return "";
    // Without an API server there are no classes, so the name is taken for the handler's.
    if (cluster === undefined) return runtimeClassName;
    const found = cluster.runtimeClasses.get(undefined, runtimeClassName);
    if (found === undefined) throw new Error(`RuntimeClass "${runtimeClassName}" not found`);
    return found.handler;
  };
}
