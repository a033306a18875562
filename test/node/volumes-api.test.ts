// Volumes that need a cluster, as a container sees them: the built agent with a local API server on a real containerd.
import assert from "node:assert/strict";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../src/base/index.ts";
import { CriClient } from "../../src/cri/index.ts";
import { readMounts } from "../../src/host/index.ts";
import { isAlreadyExists, resources } from "../../src/kube/index.ts";
import type { Container, PersistentVolumeClaim, PersistentVolumeSpec, Pod, PodSpec } from "../../src/model/index.ts";
import { attachmentName, uniqueName } from "../../src/volumes/csi/csi-volume.ts";
import { eventually, isReady } from "../support/agent.ts";
import { ApiCluster } from "../support/api-cluster.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { TestCsiDriver } from "../support/csi-driver.ts";

const soon = (): AbortSignal => AbortSignal.timeout(10_000);
const nodeName = "test-node";

describe("volumes of a cluster on a real node", () => {
  let containerd: TestContainerd;
  let cluster: ApiCluster;
  let cri: CriClient;

  before(async () => {
    containerd = await startContainerd();
    cluster = await ApiCluster.start(containerd);
    cri = new CriClient({ runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 120_000 }, { clock: systemClock });
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: nodeName, labels: { disk: "here" } } };
    await cluster.admin.create(resources.nodes, {}, node, soon()).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
  });
  after(async () => {
    cri?.close();
    await cluster?.[Symbol.asyncDispose]();
    await containerd?.[Symbol.asyncDispose]();
  });

  async function sh(pod: Pod, script: string): Promise<string> {
    const id = pod.status?.containerStatuses?.[0]?.containerID ?? "";
    const cmd = ["sh", "-c", script];
    const result = await cri.runtime.execSync({ containerId: id.replace(/^.*:\/\//, ""), cmd, timeout: 20n });
    return (Buffer.from(result.stdout).toString() + Buffer.from(result.stderr).toString()).trim();
  }

  function main(more: Partial<Container> = {}): Container {
    return { name: "main", image: containerd.images.busybox, command: ["sleep", "3600"], ...more };
  }

  async function run(name: string, spec: Partial<PodSpec>): Promise<Pod> {
    await cluster.create(name, spec);
    return cluster.until(name, "ready", isReady);
  }

  async function end(name: string, { metadata }: Pod): Promise<void> {
    await cluster.delete(name, 1);
    await cluster.untilGone(name);
    const left = (await readMounts()).filter(({ mountPoint }) => mountPoint.includes(metadata?.uid ?? "?"));
    assert.deepEqual(left, []);
  }

  /** A persistent volume with a claim that is bound to it, as the controllers of a cluster leave them. */
  async function bind(
    name: string,
    source: Partial<PersistentVolumeSpec>,
    accessModes = ["ReadWriteOnce"],
  ): Promise<void> {
    const namespace = "default";
    const capacity = { storage: "1Gi" };
    const mode = source.volumeMode === undefined ? {} : { volumeMode: source.volumeMode };
    const claim: PersistentVolumeClaim = await cluster.admin.create<PersistentVolumeClaim>(
      resources.persistentVolumeClaims,
      { namespace },
      {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata: { name, namespace },
        spec: {
          accessModes,
          resources: { requests: capacity },
          volumeName: `pv-${name}`,
          storageClassName: "",
          ...mode,
        },
      },
      soon(),
    );
    await cluster.admin.create(
      resources.persistentVolumes,
      {},
      {
        apiVersion: "v1",
        kind: "PersistentVolume",
        metadata: { name: `pv-${name}` },
        spec: { accessModes, capacity, claimRef: { namespace, name, uid: claim.metadata?.uid }, ...source },
      },
      soon(),
    );
    const ref = { namespace, name, subresource: "status" };
    const body = { status: { phase: "Bound", capacity } };
    await cluster.admin.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, soon());
  }

  test("config maps and secrets of the API reach a running container within a second", async () => {
    const namespace = "default";
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings", namespace }, data: { a: "1" } };
    await cluster.admin.create(resources.configMaps, { namespace }, map, soon());
    const pod = await run("follows", {
      containers: [main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", configMap: { name: "settings" } }],
    });
    assert.equal(await sh(pod, "cat /v/a"), "1");
    const body = { data: { a: "2" } };
    await cluster.admin.patch(resources.configMaps, { namespace, name: "settings" }, { type: "merge", body }, soon());
    await eventually(async () => (await sh(pod, "cat /v/a")) === "2", "the change", 5_000);
    await end("follows", pod);
  });

  test("a service account token is mounted, for the pod's user alone", async () => {
    const source = { serviceAccountToken: { path: "token", audience: "vault", expirationSeconds: 600 } };
    const pod = await run("identity", {
      securityContext: { runAsUser: 1234 },
      containers: [main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", projected: { sources: [source] } }],
    });
    assert.equal(await sh(pod, "stat -Lc '%a %u' /v/token"), "600 1234");
    const [, payload = ""] = (await sh(pod, "cat /v/token")).split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString());
    assert.deepEqual([claims.aud].flat(), ["vault"]);
    await end("identity", pod);
  });

  test("a claim on a directory of the node: written, kept, given to the group", async () => {
    const path = join(containerd.stateDir, "local-disk");
    await mkdir(path);
    const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "In", values: ["here"] }] }] };
    await bind("local", { local: { path }, nodeAffinity: { required } });
    const spec = {
      securityContext: { fsGroup: 4321 },
      containers: [main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: "local" } }],
    };
    const pod = await run("writes", spec);
    await sh(pod, "echo kept > /v/file");
    assert.equal(await sh(pod, "stat -c '%a %g' /v"), "2775 4321");
    await end("writes", pod);
    assert.equal(await readFile(join(path, "file"), "utf8"), "kept\n");
    const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "local", readOnly: true } }];
    const reader = await run("reads", { ...spec, volumes });
    assert.equal(await sh(reader, "cat /v/file"), "kept");
    assert.match(await sh(reader, "touch /v/x"), /Read-only file system/);
    await end("reads", reader);
  });

  test("a claim that is not bound yet holds the pod up, and says so", async () => {
    const namespace = "default";
    await cluster.admin.create(
      resources.persistentVolumeClaims,
      { namespace },
      {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata: { name: "pending", namespace },
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, storageClassName: "" },
      },
      soon(),
    );
    await cluster.create("waits", {
      containers: [main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: "pending" } }],
    });
    const message = await eventually(
      async () => {
        const { items } = await cluster.admin.list(resources.events, { namespace }, {}, soon());
        return items.find(({ involvedObject, reason }) => involvedObject.name === "waits" && reason === "FailedMount")
          ?.message;
      },
      "the event",
      20_000,
    );
    assert.equal(
      message,
      "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: " +
        "error processing PVC default/pending: PVC is not bound",
    );
    await cluster.delete("waits", 0);
    await cluster.untilGone("waits");
  });

  test("a storage driver through the whole life of a pod: agent and driver restarted in between", async () => {
    const registry = join(cluster.agent.rootDir, "plugins_registry");
    const topology = { "topology.example.com/rack": "r1" };
    const driver = new TestCsiDriver(join(containerd.stateDir, "csi"), registry, { topology, maxVolumes: 9n });
    await driver.start();
    try {
      await eventually(async () => driver.statuses.length > 0, "the driver is registered", 20_000);
      assert.deepEqual(driver.statuses[0], { pluginRegistered: true, error: "" });
      const csiNode = await cluster.admin.get(resources.csiNodes, { name: nodeName }, {}, soon());
      assert.deepEqual(csiNode.spec.drivers, [
        { name: driver.name, nodeID: "node-1", topologyKeys: ["topology.example.com/rack"], allocatable: { count: 9 } },
      ]);
      const node = await cluster.admin.get(resources.nodes, { name: nodeName }, {}, soon());
      assert.equal(node.metadata?.labels?.["topology.example.com/rack"], "r1");
      assert.equal(node.metadata?.annotations?.["csi.volume.kubernetes.io/nodeid"], '{"csi.example.com":"node-1"}');

      const volume = { driver: driver.name, handle: "disk-1" };
      await bind("disk", { csi: { driver: driver.name, volumeHandle: "disk-1", fsType: "ext4" } });
      const spec = {
        securityContext: { fsGroup: 4321 },
        containers: [
          main({
            volumeMounts: [
              { name: "v", mountPath: "/v" },
              { name: "v", mountPath: "/part", subPath: "a/b" },
            ],
          }),
        ],
        volumes: [{ name: "v", persistentVolumeClaim: { claimName: "disk" } }],
      };
      await cluster.create("stores", spec);
      // The pod waits for the attach controller, whose part we play.
      await eventually(
        async () => /Volume not attached according to node status/.test(await cluster.agent.logTail()),
        "the wait",
        20_000,
      );
      assert.deepEqual(driver.steps(), []);
      await cluster.admin.create(
        resources.volumeAttachments,
        {},
        {
          apiVersion: "storage.k8s.io/v1",
          kind: "VolumeAttachment",
          metadata: { name: attachmentName(volume, nodeName) },
          spec: { attacher: driver.name, nodeName, source: { persistentVolumeName: "pv-disk" } },
        },
        soon(),
      );
      const attached = { status: { attached: true, attachmentMetadata: { device: "/dev/sdx" } } };
      const attachment = { name: attachmentName(volume, nodeName), subresource: "status" };
      await cluster.admin.patch(resources.volumeAttachments, attachment, { type: "merge", body: attached }, soon());
      const status = { status: { volumesAttached: [{ name: uniqueName(volume), devicePath: "" }] } };
      await cluster.admin.patch(
        resources.nodes,
        { name: nodeName, subresource: "status" },
        { type: "merge", body: status },
        soon(),
      );
      const pod = await cluster.until("stores", "ready", isReady);
      assert.deepEqual(driver.steps(), ["NodeStageVolume", "NodePublishVolume"]);
      assert.deepEqual(driver.lastCall("NodeStageVolume")["publishContext"], { device: "/dev/sdx" });
      await sh(pod, "echo kept > /v/file; echo part > /part/file");
      assert.equal(await readFile(join(driver.dataOf("disk-1"), "file"), "utf8"), "kept\n");
      assert.equal(await sh(pod, "cat /v/a/b/file"), "part");
      assert.equal((await stat(driver.dataOf("disk-1"))).gid, 4321);

      await cluster.agent.kill9();
      await cluster.agent.launch();
      await eventually(async () => driver.statuses.length > 1, "the driver is registered with the new agent", 20_000);
      await driver.stop();
      await eventually(
        async () =>
          (await cluster.admin.get(resources.csiNodes, { name: nodeName }, {}, soon())).spec.drivers.length === 0,
        "the driver is gone from the node's record",
        20_000,
      );
      assert.equal(await sh(pod, "cat /v/file"), "kept", "the pod runs on without agent or driver");
      await cluster.delete("stores", 1);
      await eventually(
        async () => /not found in the list of registered CSI drivers/.test(await cluster.agent.logTail()),
        "the wait for the driver",
        30_000,
      );
      await driver.start();
      await cluster.untilGone("stores");
      assert.deepEqual(driver.steps().slice(-2), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
      assert.equal(await readFile(join(driver.dataOf("disk-1"), "file"), "utf8"), "kept\n");
      const left = (await readMounts()).filter(({ mountPoint }) => mountPoint.startsWith(`${cluster.agent.rootDir}/p`));
      assert.deepEqual(left, []);
    } finally {
      await driver.stop();
    }
  });

  test("a driver's volume that lives with its pod, renewed while it runs", async () => {
    const registry = join(cluster.agent.rootDir, "plugins_registry");
    const driver = new TestCsiDriver(join(containerd.stateDir, "inline"), registry, {
      name: "inline.example.com",
      abilities: [],
    });
    await cluster.admin.create(
      resources.csiDrivers,
      {},
      {
        apiVersion: "storage.k8s.io/v1",
        kind: "CSIDriver",
        metadata: { name: driver.name },
        spec: { volumeLifecycleModes: ["Ephemeral"], podInfoOnMount: true, attachRequired: false },
      },
      soon(),
    );
    await driver.start();
    try {
      await eventually(async () => driver.statuses.length > 0, "the driver is registered", 20_000);
      const pod = await run("short", {
        containers: [main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
        volumes: [{ name: "v", csi: { driver: driver.name, volumeAttributes: { flavour: "plain" } } }],
      });
      const context = driver.lastCall("NodePublishVolume")["volumeContext"] as Record<string, string>;
      assert.equal(context["flavour"], "plain");
      assert.equal(context["csi.storage.k8s.io/pod.name"], "short");
      await writeFile(
        join(driver.dataOf(String(driver.lastCall("NodePublishVolume")["volumeId"])), "hello"),
        "from the driver",
      );
      assert.equal(await sh(pod, "cat /v/hello"), "from the driver");
      await end("short", pod);
      assert.deepEqual(driver.steps(), ["NodePublishVolume", "NodeUnpublishVolume"]);
    } finally {
      await driver.stop();
    }
  });
});
