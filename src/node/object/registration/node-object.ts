import type { Node, Taint } from "../../../ground/model/index.ts";
import type { NodeSettings } from "../settings.ts";

export const attachDetachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach";
const providedIpAnnotation = "alpha.kubernetes.io/provided-node-ip";
const uninitialized: Taint = {
  key: "node.cloudprovider.kubernetes.io/uninitialized",
  value: "true",
  effect: "NoSchedule",
};

/** The Node as it is first made, but for its status. */
export function newNode(settings: NodeSettings, architecture: string): Node {
  const { nodeName, labels, providerId, externalCloud, nodeIps, controllerAttachDetach } = settings;
  const taints = [...settings.taints, ...(externalCloud ? [uninitialized] : [])];
  const given = nodeIps.filter((ip) => ip !== "0.0.0.0" && ip !== "::");
  const annotations = {
    ...(controllerAttachDetach && { [attachDetachAnnotation]: "true" }),
    ...(externalCloud && given.length > 0 && { [providedIpAnnotation]: given.join(",") }),
  };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: nodeName,
      labels: {
        "kubernetes.io/hostname": nodeName,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": architecture,
        ...labels,
      },
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: {
      ...(taints.length > 0 && { taints }),
      ...(providerId !== "" && { providerID: providerId }),
    },
  };
}
