import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { PodSpec } from "../../src/ground/model/index.ts";
import { ApiCluster } from "./api-cluster.ts";
import { startContainerd, type TestContainerd } from "./containerd.ts";
import { Kubectl } from "./kubectl.ts";
import { untilTold } from "./raw-runtime.ts";

/** A real containerd, the built agent, a local API server, and kubectl for its administrator. */
export class KubectlCluster implements AsyncDisposable {
  readonly containerd: TestContainerd;
  readonly cluster: ApiCluster;
  readonly kubectl: Kubectl;
  readonly directory: string;

  private constructor(containerd: TestContainerd, cluster: ApiCluster, directory: string) {
    this.containerd = containerd;
    this.cluster = cluster;
    this.directory = directory;
    this.kubectl = new Kubectl(cluster.adminKubeconfig, directory);
  }

  static async start(): Promise<KubectlCluster> {
    const containerd = await startContainerd();
    const directory = join(containerd.stateDir, "home");
    await mkdir(directory);
    return new KubectlCluster(containerd, await ApiCluster.start(containerd), directory);
  }

  /** A pod with one container `main` that runs the command, unless the spec says otherwise. */
  pod(
    name: string,
    command: readonly string[] = untilTold,
    spec: Partial<PodSpec> = {},
    metadata: object = {},
  ): object {
    const containers = [{ name: "main", image: this.containerd.images.busybox, command: [...command] }];
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, ...metadata },
      spec: { terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, containers, ...spec },
    };
  }

  /** Applies pods and waits until they are ready. */
  async run(...pods: readonly object[]): Promise<void> {
    await this.kubectl.apply(...pods);
    const names = pods.map((pod) => `pod/${(pod as { metadata: { name: string } }).metadata.name}`);
    await this.kubectl.succeed("wait", "--for=condition=Ready", "--timeout=60s", ...names);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    await this.containerd[Symbol.asyncDispose]();
  }
}
