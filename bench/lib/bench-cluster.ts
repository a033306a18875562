import { ApiCluster } from "../../test/support/api-cluster.ts";
import { adminClients, ClusterPods } from "../../test/support/cluster-pods.ts";
import type { TestContainerd } from "../../test/support/containerd.ts";
import { findControlPlane, joinControlPlane } from "../../test/support/restart-proof/control-plane.ts";

/**
 * The agent in a cluster: the one that NODELET_CLUSTER names, a directory with admin.kubeconfig, node.kubeconfig (of
 * test-node) and ca.crt of a control plane; without it a local API server is started.
 */
export async function startBenchCluster(containerd: TestContainerd): Promise<ClusterPods & AsyncDisposable> {
  const directory = process.env["NODELET_CLUSTER"];
  if (directory === undefined) return await ApiCluster.start(containerd);
  const plane = await findControlPlane(directory);
  const clients = await adminClients(plane.adminKubeconfig);
  const agent = await joinControlPlane(containerd, plane);
  const cluster = new ClusterPods({ agent, admin: clients.main });
  return Object.assign(cluster, {
    async [Symbol.asyncDispose]() {
      await agent[Symbol.asyncDispose]();
      clients[Symbol.dispose]();
    },
  });
}
