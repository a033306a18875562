// What only a member of a cluster needs; most machines of one person never load it.
import { KubeconfigConnection } from "../connections/kube/index.ts";
import type { Clock } from "../ground/base/index.ts";
import { systemNetwork } from "../node/object/index.ts";
import { kubeReviews } from "../node/server/index.ts";
import { buildApiPods } from "./build-api-pods.ts";
import { buildCluster } from "./build-cluster.ts";
import { buildNode } from "./build-node.ts";
import { buildResourceSlices } from "./build-resource-slices.ts";
import { buildServingCertificate } from "./build-serving-certificate.ts";
import { buildStorage } from "./build-storage.ts";
import type { ClusterInputs } from "./inputs.ts";

const parts = {
  buildCluster,
  buildNode,
  buildApiPods,
  buildStorage,
  buildResourceSlices,
  buildServingCertificate,
  kubeReviews,
};

export type ClusterParts = typeof parts;

/** The cluster that the kubeconfig names. */
export function kubeconfigCluster(clock: Clock): ClusterInputs {
  return { parts, network: systemNetwork(clock), connect: (ports) => new KubeconfigConnection(ports) };
}
