// Volumes that need a cluster, as a container sees them: the built agent with a local API server on a real containerd.
import assert from "node:assert/strict";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { readMounts } from "../../src/connections/host/index.ts";
import { resources } from "../../src/connections/kube/index.ts";
import type { Summary } from "../../src/node/server/stats/summary-types.ts";
import { attachmentName, uniqueName } from "../../src/pod/volumes/csi/csi-volume.ts";
import { eventually, isReady } from "../support/agent.ts";
import type { ApiCluster } from "../support/api-cluster.ts";
import { TestCsiDriver } from "../support/csi-driver.ts";
import { freePort } from "../support/free-port.ts";
import { soon } from "../support/until.ts";
import { VolumeCluster } from "../support/volume-cluster.ts";

const nodeName = "test-node";

describe("volumes of a cluster on a real node", () => {
  let volumes: VolumeCluster;
  let cluster: ApiCluster;
  let readOnlyPort: number;
  before(async () => {
    readOnlyPort = await freePort();
    // Drivers are asked again, and claims looked at again, with each sync.
    volumes = await VolumeCluster.start({ syncFrequency: "1s", readOnlyPort });
    cluster = volumes.cluster;
  });
  after(() => volumes?.[Symbol.asyncDispose]());

  test("config maps and secrets of the API reach a running container within a second", async () => {
    const namespace = "default";
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings", namespace }, data: { a: "1" } };
    await cluster.admin.create(resources.configMaps, { namespace }, map, soon());
    const pod = await volumes.run("follows", {
      containers: [volumes.main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", configMap: { name: "settings" } }],
    });
    assert.equal(await volumes.sh(pod, "cat /v/a"), "1");
    const body = { data: { a: "2" } };
    await cluster.admin.patch(resources.configMaps, { namespace, name: "settings" }, { type: "merge", body }, soon());
    await eventually(async () => (await volumes.sh(pod, "cat /v/a")) === "2", "the change", 30_000);
    await volumes.end("follows", pod);
  });

  test("a service account token is mounted, for the pod's user alone", async () => {
    const source = { serviceAccountToken: { path: "token", audience: "vault", expirationSeconds: 600 } };
    const pod = await volumes.run("identity", {
      securityContext: { runAsUser: 1234 },
      containers: [volumes.main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", projected: { sources: [source] } }],
    });
    assert.equal(await volumes.sh(pod, "stat -Lc '%a %u' /v/token"), "600 1234");
    const [, payload = ""] = (await volumes.sh(pod, "cat /v/token")).split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString());
    assert.deepEqual([claims.aud].flat(), ["vault"]);
    await volumes.end("identity", pod);
  });

  test("a claim on a directory of the node: written, kept, given to the group", async () => {
    const path = join(volumes.containerd.stateDir, "local-disk");
    await mkdir(path);
    const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "In", values: ["here"] }] }] };
    await volumes.bind("local", { local: { path }, nodeAffinity: { required } });
    const spec = {
      securityContext: { fsGroup: 4321 },
      containers: [volumes.main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: "local" } }],
    };
    const pod = await volumes.run("writes", spec);
    await volumes.sh(pod, "echo kept > /v/file");
    assert.equal(await volumes.sh(pod, "stat -c '%a %g' /v"), "2775 4321");
    await volumes.end("writes", pod);
    assert.equal(await readFile(join(path, "file"), "utf8"), "kept\n");
    const readOnly = [{ name: "v", persistentVolumeClaim: { claimName: "local", readOnly: true } }];
    const reader = await volumes.run("reads", { ...spec, volumes: readOnly });
    assert.equal(await volumes.sh(reader, "cat /v/file"), "kept");
    assert.match(await volumes.sh(reader, "touch /v/x"), /Read-only file system/);
    await volumes.end("reads", reader);
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
      containers: [volumes.main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: "pending" } }],
    });
    assert.equal(
      await volumes.event("waits", "FailedMount"),
      "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: " +
        "error processing PVC default/pending: PVC is not bound",
    );
    await cluster.delete("waits", 0);
    await cluster.untilGone("waits");
  });

  test("a storage driver through the whole life of a pod: agent and driver restarted in between", async () => {
    const registry = join(cluster.agent.rootDir, "plugins_registry");
    const topology = { "topology.example.com/rack": "r1" };
    const driver = new TestCsiDriver(join(volumes.containerd.stateDir, "csi"), registry, {
      topology,
      maxVolumes: 9n,
      abilities: ["stage", "expand", "stats"],
    });
    await driver.start();
    try {
      await eventually(async () => driver.statuses.length > 0, "the driver is registered", 60_000);
      assert.deepEqual(driver.statuses[0], { pluginRegistered: true, error: "" });
      const csiNode = await cluster.admin.get(resources.csiNodes, { name: nodeName }, {}, soon());
      assert.deepEqual(csiNode.spec.drivers, [
        { name: driver.name, nodeID: "node-1", topologyKeys: ["topology.example.com/rack"], allocatable: { count: 9 } },
      ]);
      const node = await cluster.admin.get(resources.nodes, { name: nodeName }, {}, soon());
      assert.equal(node.metadata?.labels?.["topology.example.com/rack"], "r1");
      assert.equal(node.metadata?.annotations?.["csi.volume.kubernetes.io/nodeid"], '{"csi.example.com":"node-1"}');

      const volume = { driver: driver.name, handle: "disk-1" };
      await volumes.bind("disk", { csi: { driver: driver.name, volumeHandle: "disk-1", fsType: "ext4" } });
      const spec = {
        securityContext: { fsGroup: 4321 },
        containers: [
          volumes.main({
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
        60_000,
      );
      assert.deepEqual(driver.steps(), []);
      const inUse = async (): Promise<readonly string[]> =>
        (await cluster.admin.get(resources.nodes, { name: nodeName }, {}, soon())).status?.volumesInUse ?? [];
      await eventually(
        async () => (await inUse())[0] === uniqueName(volume),
        "the volume is said to be in use",
        60_000,
      );
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
      await volumes.sh(pod, "echo kept > /v/file; echo part > /part/file");
      assert.equal(await readFile(join(driver.dataOf("disk-1"), "file"), "utf8"), "kept\n");
      assert.equal(await volumes.sh(pod, "cat /v/a/b/file"), "part");
      assert.equal((await stat(driver.dataOf("disk-1"))).gid, 4321);

      const record = join(cluster.agent.rootDir, "pods", pod.metadata?.uid ?? "", "volumes/kubernetes.io~csi/pv-disk");
      assert.deepEqual(JSON.parse(await readFile(join(record, "vol_data.json"), "utf8")), {
        specVolID: "pv-disk",
        volumeHandle: "disk-1",
        driverName: driver.name,
        nodeName,
        volumeLifecycleMode: "Persistent",
        attachmentID: attachmentName(volume, nodeName),
      });

      // The controllers have made the disk larger; what is on it grows while the pod uses it.
      const larger = { spec: { capacity: { storage: "2Gi" } } };
      await cluster.admin.patch(
        resources.persistentVolumes,
        { name: "pv-disk" },
        { type: "merge", body: larger },
        soon(),
      );
      const claim = { namespace: "default", name: "disk" };
      const pending = { status: { allocatedResourceStatuses: { storage: "NodeResizePending" } } };
      const claimStatus = { ...claim, subresource: "status" };
      await cluster.admin.patch(
        resources.persistentVolumeClaims,
        claimStatus,
        { type: "merge", body: pending },
        soon(),
      );
      await eventually(
        async () => {
          const { status: now } = await cluster.admin.get(resources.persistentVolumeClaims, claim, {}, soon());
          return now?.capacity?.["storage"] === "2Gi" && now.allocatedResourceStatuses?.["storage"] === undefined;
        },
        "the claim has grown",
        60_000,
      );
      assert.equal(driver.lastCall("NodeExpandVolume")["volumePath"], join(record, "mount"));
      const grown = `MountVolume.NodeExpandVolume succeeded for volume "pv-disk" ${nodeName}`;
      for (const about of ["stores", "disk"]) {
        assert.equal(await volumes.event(about, "FileSystemResizeSuccessful"), grown);
      }
      const usage = await eventually(
        async () => {
          const answer = await fetch(`http://127.0.0.1:${readOnlyPort}/stats/summary`, { signal: soon() });
          const { pods } = (await answer.json()) as Summary;
          const [found] = pods?.find(({ podRef }) => podRef.name === "stores")?.volume ?? [];
          return found?.pvcRef === undefined ? undefined : found;
        },
        "the driver's figures",
        60_000,
      );
      assert.deepEqual(usage.pvcRef, { name: "disk", namespace: "default" });
      assert.deepEqual([usage.usedBytes, usage.capacityBytes, usage.inodesFree], [400, 1000, 96]);

      await cluster.agent.kill9();
      await cluster.agent.launch();
      await eventually(async () => driver.statuses.length > 1, "the driver is registered with the new agent", 60_000);
      await driver.stop();
      await eventually(
        async () =>
          (await cluster.admin.get(resources.csiNodes, { name: nodeName }, {}, soon())).spec.drivers.length === 0,
        "the driver is gone from the node's record",
        60_000,
      );
      assert.equal(await volumes.sh(pod, "cat /v/file"), "kept", "the pod runs on without agent or driver");
      await cluster.delete("stores", 1);
      await eventually(
        async () => /not found in the list of registered CSI drivers/.test(await cluster.agent.logTail()),
        "the wait for the driver",
        30_000,
      );
      await driver.start();
      await cluster.untilGone("stores");
      const last = driver.steps().filter((step) => step !== "NodeGetVolumeStats");
      assert.deepEqual(last.slice(-2), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
      assert.equal(await readFile(join(driver.dataOf("disk-1"), "file"), "utf8"), "kept\n");
      await eventually(async () => (await inUse()).length === 0, "the volume may be detached", 60_000);
      const left = (await readMounts()).filter(({ mountPoint }) => mountPoint.startsWith(`${cluster.agent.rootDir}/p`));
      assert.deepEqual(left, []);
    } finally {
      await driver.stop();
    }
  });

  test("a driver's volume that lives with its pod, renewed while it runs", async () => {
    const registry = join(cluster.agent.rootDir, "plugins_registry");
    const driver = new TestCsiDriver(join(volumes.containerd.stateDir, "inline"), registry, {
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
        spec: {
          volumeLifecycleModes: ["Ephemeral"],
          podInfoOnMount: true,
          attachRequired: false,
          requiresRepublish: true,
          tokenRequests: [{ audience: "vault" }],
        },
      },
      soon(),
    );
    await driver.start();
    try {
      await eventually(async () => driver.statuses.length > 0, "the driver is registered", 60_000);
      const pod = await volumes.run("short", {
        containers: [volumes.main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
        volumes: [{ name: "v", csi: { driver: driver.name, volumeAttributes: { flavour: "plain" } } }],
      });
      const context = driver.lastCall("NodePublishVolume")["volumeContext"] as Record<string, string>;
      assert.equal(context["flavour"], "plain");
      assert.equal(context["csi.storage.k8s.io/pod.name"], "short");
      await writeFile(
        join(driver.dataOf(String(driver.lastCall("NodePublishVolume")["volumeId"])), "hello"),
        "from the driver",
      );
      assert.equal(await volumes.sh(pod, "cat /v/hello"), "from the driver");
      const tokens = JSON.parse(context["csi.storage.k8s.io/serviceAccount.tokens"] ?? "{}");
      assert.match(tokens.vault.token, /^[\w-]+\.[\w-]+\.[\w-]+$/);
      await eventually(async () => driver.steps().length >= 3, "the volume was published again", 60_000);
      await cluster.agent.kill9();
      await cluster.agent.launch();
      const before = driver.steps().length;
      await eventually(async () => driver.steps().length > before, "the new agent does so, too", 60_000);
      assert.equal(await volumes.sh(pod, "cat /v/hello"), "from the driver");
      await volumes.end("short", pod);
      assert.equal(driver.steps().at(-1), "NodeUnpublishVolume");
      assert.deepEqual(new Set(driver.steps()), new Set(["NodePublishVolume", "NodeUnpublishVolume"]));
    } finally {
      await driver.stop();
    }
  });
});
