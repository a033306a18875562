import type { Node, Taint } from "../../../ground/model/index.ts";
import { cloudLabels } from "../cloud-labels.ts";
import type { CloudFacts } from "../ports.ts";
import type { NodeSettings } from "../settings.ts";
import { ownAnnotations } from "../status/own-annotations.ts";

export const attachDetachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach";
const uninitialized: Taint = {
  key: "node.cloudprovider.kubernetes.io/uninitialized",
  value: "true",
  effect: "NoSchedule",
};

/** The Node as it is first made, but for its status. */
export function newNode(settings: NodeSettings, architecture: string, cloud?: CloudFacts): Node {
  const { nodeName, labels, externalCloud, controllerAttachDetach } = settings;
  const providerId = settings.providerId || (cloud?.providerId ?? "");
  const taints = [...settings.taints, ...(externalCloud ? [uninitialized] : [])];
  const annotations = controllerAttachDetach ? { [attachDetachAnnotation]: "true" } : {};
  const node: Node = {
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
        ...(cloud && cloudLabels(cloud)),
        ...labels,
      },
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: {
      ...(taints.length > 0 && { taints }),
      ...(providerId !== "" && { providerID: providerId }),
    },
  };
  return { ...node, metadata: ownAnnotations(node.metadata, settings, undefined) };
}
