// What only a member of a cluster needs; most machines of one person never load it.
import type { Clock } from "../ground/base/index.ts";
import { systemNetwork } from "../node/object/index.ts";
import { buildApiPods } from "./api-pods.ts";
import { buildCluster } from "./cluster.ts";
import { KubeconfigConnection } from "./cluster-access.ts";
import type { ClusterInputs } from "./inputs.ts";
import { kubeReviews } from "./kube-reviews.ts";
import { buildNode } from "./node.ts";
import { buildServingCertificate } from "./serving-certificate.ts";
import { buildStorage } from "./storage.ts";

const parts = {
  buildCluster,
  buildNode,
  buildApiPods,
  buildStorage,
  buildServingCertificate,
  kubeReviews,
};

export type ClusterParts = typeof parts;

/** The cluster that the kubeconfig names. */
export function kubeconfigCluster(clock: Clock): ClusterInputs {
  return { parts, network: systemNetwork(clock), connect: (ports) => new KubeconfigConnection(ports) };
}
