import { after, before } from "node:test";
import { ApiCluster } from "./api-cluster.ts";
import { startContainerd, type TestContainerd } from "./containerd.ts";

/** What the tests of a file have, from the first of them on. */
export interface ClusterForTests {
  readonly containerd: TestContainerd;
  readonly cluster: ApiCluster;
}

/** A cluster of one real node for all tests of a file or suite: made before them, removed after them. */
export function clusterForTests(): ClusterForTests {
  let containerd: TestContainerd | undefined;
  let cluster: ApiCluster | undefined;
  before(async () => {
    containerd = await startContainerd();
    cluster = await ApiCluster.start(containerd);
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
    await containerd?.[Symbol.asyncDispose]();
  });
  return {
    get containerd() {
      return started(containerd);
    },
    get cluster() {
      return started(cluster);
    },
  };
}

function started<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error("the cluster is there only while tests run");
  return part;
}
