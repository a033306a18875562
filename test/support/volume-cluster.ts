import assert from "node:assert/strict";
import { CriClient } from "../../src/connections/cri/index.ts";
import { readMounts } from "../../src/connections/host/index.ts";
import { isAlreadyExists, resources } from "../../src/connections/kube/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type {
  Container,
  OwnerReference,
  PersistentVolumeClaim,
  PersistentVolumeSpec,
  Pod,
  PodSpec,
} from "../../src/ground/model/index.ts";
import { answerMs, eventually, isReady } from "./agent.ts";
import { ApiCluster } from "./api-cluster.ts";
import { startContainerd, type TestContainerd } from "./containerd.ts";
import { untilTold } from "./raw-runtime.ts";

const namespace = "default";
const soon = (): AbortSignal => AbortSignal.timeout(answerMs);

/** A cluster of one real node, whose volumes are looked at from inside the containers. */
export class VolumeCluster implements AsyncDisposable {
  readonly containerd: TestContainerd;
  readonly cluster: ApiCluster;
  readonly #cri: CriClient;

  private constructor(containerd: TestContainerd, cluster: ApiCluster) {
    this.containerd = containerd;
    this.cluster = cluster;
    const settings = { runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 120_000 };
    this.#cri = new CriClient(settings, { clock: systemClock });
  }

  static async start(config: object = {}, flags: readonly string[] = []): Promise<VolumeCluster> {
    const containerd = await startContainerd();
    try {
      const cluster = await ApiCluster.start(containerd, config, "member", flags);
      const labelled = { metadata: { name: "test-node", labels: { disk: "here" } } };
      await cluster.admin
        .create(resources.nodes, {}, { apiVersion: "v1", kind: "Node", ...labelled }, soon())
        .catch((error: unknown) => {
          if (!isAlreadyExists(error)) throw error;
          return cluster.admin.patch(resources.nodes, { name: "test-node" }, { type: "merge", body: labelled }, soon());
        });
      return new VolumeCluster(containerd, cluster);
    } catch (error) {
      await containerd[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What a script prints in the pod's first container, problems included. */
  async sh(pod: Pod, script: string): Promise<string> {
    const id = pod.status?.containerStatuses?.[0]?.containerID ?? "";
    const cmd = ["sh", "-c", script];
    const result = await this.#cri.runtime.execSync({ containerId: id.replace(/^.*:\/\//, ""), cmd, timeout: 20n });
    return (Buffer.from(result.stdout).toString() + Buffer.from(result.stderr).toString()).trim();
  }

  main(more: Partial<Container> = {}): Container {
    return { name: "main", image: this.containerd.images.busybox, command: untilTold, ...more };
  }

  async run(name: string, spec: Partial<PodSpec>): Promise<Pod> {
    await this.cluster.create(name, spec);
    return this.cluster.until(name, "ready", isReady);
  }

  /** Deletes the pod; nothing of it may be left mounted. */
  async end(name: string, { metadata }: Pod): Promise<void> {
    await this.cluster.delete(name, 1);
    await this.cluster.untilGone(name);
    const left = (await readMounts()).filter(({ mountPoint }) => mountPoint.includes(metadata?.uid ?? "?"));
    assert.deepEqual(left, []);
  }

  /** A persistent volume with a claim that is bound to it, as the controllers of a cluster leave them. */
  async bind(
    name: string,
    source: Partial<PersistentVolumeSpec>,
    { accessModes = ["ReadWriteOnce"], owner }: { accessModes?: readonly string[]; owner?: Pod } = {},
  ): Promise<void> {
    const { admin } = this.cluster;
    const capacity = { storage: "1Gi" };
    const mode = source.volumeMode === undefined ? {} : { volumeMode: source.volumeMode };
    const claim: PersistentVolumeClaim = await admin.create<PersistentVolumeClaim>(
      resources.persistentVolumeClaims,
      { namespace },
      {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata: { name, namespace, ...(owner === undefined ? {} : { ownerReferences: [controlledBy(owner)] }) },
        spec: {
          accessModes: [...accessModes],
          resources: { requests: capacity },
          volumeName: `pv-${name}`,
          storageClassName: "",
          ...mode,
        },
      },
      soon(),
    );
    const claimRef = { namespace, name, uid: claim.metadata?.uid };
    await admin.create(
      resources.persistentVolumes,
      {},
      {
        apiVersion: "v1",
        kind: "PersistentVolume",
        metadata: { name: `pv-${name}` },
        spec: { accessModes: [...accessModes], capacity, claimRef, ...source },
      },
      soon(),
    );
    const ref = { namespace, name, subresource: "status" };
    const body = { status: { phase: "Bound", capacity } };
    await admin.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, soon());
  }

  /** Waits for an event about the pod; its message. */
  async event(pod: string, reason: string, applies: (message: string) => boolean = () => true): Promise<string> {
    return eventually(
      async () => {
        const { items } = await this.cluster.admin.list(resources.events, { namespace }, {}, soon());
        const about = items.filter((event) => event.involvedObject.name === pod && event.reason === reason);
        return about.map(({ message = "" }) => message).find(applies);
      },
      `an event ${reason} about ${pod}`,
      30_000,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cri.close();
    await this.cluster[Symbol.asyncDispose]();
    await this.containerd[Symbol.asyncDispose]();
  }
}

function controlledBy({ metadata }: Pod): OwnerReference {
  const { name = "", uid = "" } = metadata ?? {};
  return { apiVersion: "v1", kind: "Pod", name, uid, controller: true, blockOwnerDeletion: true };
}
