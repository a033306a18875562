import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { testNodeName } from "../../../test/support/csi-cluster.ts";
import { DriverFailure } from "../../../test/support/csi-driver.ts";
import { CsiNode } from "../../../test/support/csi-node.ts";
import { eventually, podWithVolumes } from "../../../test/support/volume-node.ts";
import { systemClock } from "../../base/index.ts";
import { isMountPoint } from "../../host/index.ts";
import { type IdentifiedPod, uidOf, type Volume } from "../../model/index.ts";
import { VolumeError } from "../engine/volume-error.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;
const driver = "csi.example.com";
const claimed = (claimName: string, readOnly = false): Volume => ({
  name: "v",
  persistentVolumeClaim: { claimName, readOnly },
});
const inline = (more: object = {}): Volume => ({ name: "v", csi: { driver, ...more } });

function targetOf({ node }: CsiNode, pod: IdentifiedPod, name: string): string {
  return join(node.volumePath(uidOf(pod), "kubernetes.io/csi", name), "mount");
}

async function refused(csi: CsiNode, pod: IdentifiedPod): Promise<string> {
  const error: unknown = await csi.node.volumes.mount(pod, never).catch((caught: unknown) => caught);
  assert.ok(error instanceof VolumeError, String(error));
  return error.message;
}

test(
  "the whole life of a volume: staged once, published for each pod, and back in the reverse order",
  needsRoot,
  async () => {
    await using csi = await CsiNode.create();
    csi.bind("c", { mountOptions: ["noatime"] }, { volumeAttributes: { pool: "ssd" } });
    const [a, b] = [podWithVolumes([claimed("c")]), podWithVolumes([claimed("c", true)])];
    await csi.node.volumes.mount(a, never);
    await csi.node.volumes.mount(b, never);
    assert.deepEqual(csi.driver.steps(), ["NodeStageVolume", "NodePublishVolume", "NodePublishVolume"]);

    const staging = csi.staging("vol-c");
    const { volumeCapability, ...staged } = csi.driver.lastCall("NodeStageVolume");
    assert.deepEqual(staged, {
      volumeId: "vol-c",
      publishContext: { device: "/dev/sdx" },
      stagingTargetPath: join(staging, "globalmount"),
      secrets: {},
      volumeContext: { pool: "ssd" },
    });
    assert.deepEqual(volumeCapability, {
      block: undefined,
      mount: { fsType: "ext4", mountFlags: ["noatime"], volumeMountGroup: "" },
      accessMode: { mode: 1 },
    });
    const published = csi.driver.lastCall("NodePublishVolume");
    assert.equal(published["targetPath"], targetOf(csi, b, "pv-c"));
    assert.equal(published["stagingTargetPath"], join(staging, "globalmount"));
    assert.equal(published["readonly"], true);

    await writeFile(join(targetOf(csi, a, "pv-c"), "data"), "1");
    assert.equal(await readFile(join(targetOf(csi, b, "pv-c"), "data"), "utf8"), "1");
    await assert.rejects(writeFile(join(targetOf(csi, b, "pv-c"), "x"), ""), { code: "EROFS" });
    assert.deepEqual(csi.node.volumes.of(uidOf(b)).get("v"), {
      type: "filesystem",
      hostPath: targetOf(csi, b, "pv-c"),
      readOnly: true,
      relabel: true,
    });

    const record = JSON.parse(
      await readFile(join(csi.node.volumePath(uidOf(a), "kubernetes.io/csi", "pv-c"), "vol_data.json"), "utf8"),
    );
    const attachmentID = `csi-${createHash("sha256").update(`vol-c${driver}${testNodeName}`).digest("hex")}`;
    assert.deepEqual(record, {
      specVolID: "pv-c",
      volumeHandle: "vol-c",
      driverName: driver,
      nodeName: testNodeName,
      attachmentID,
      volumeLifecycleMode: "Persistent",
    });
    assert.deepEqual(JSON.parse(await readFile(join(staging, "vol_data.json"), "utf8")), {
      driverName: driver,
      volumeHandle: "vol-c",
    });
    assert.deepEqual(csi.kind.volumesInUse(), [`kubernetes.io/csi/${driver}^vol-c`]);

    await csi.node.volumes.unmount(uidOf(a));
    assert.equal(csi.driver.steps().at(-1), "NodeUnpublishVolume");
    assert.equal(await isMountPoint(join(staging, "globalmount")), true, "the other pod still has it");
    await csi.node.volumes.unmount(uidOf(b));
    assert.deepEqual(csi.driver.steps().slice(-2), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
    assert.deepEqual(await csi.node.mounts(), []);
    await assert.rejects(stat(staging), { code: "ENOENT" });
    assert.deepEqual(csi.kind.volumesInUse(), []);
    assert.deepEqual(
      csi.inUse,
      [[`kubernetes.io/csi/${driver}^vol-c`], []],
      "the cluster hears of each change at once",
    );
    assert.equal(await readFile(join(csi.driver.dataOf("vol-c"), "data"), "utf8"), "1");
  },
);

test("a driver that does without staging gets an empty staging path and no such calls", needsRoot, async () => {
  await using csi = await CsiNode.create({ abilities: [] });
  csi.bind("c");
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  assert.equal(csi.driver.lastCall("NodePublishVolume")["stagingTargetPath"], "");
  assert.deepEqual(await readdir(csi.staging("vol-c")), ["globalmount"]);
  await csi.node.volumes.unmount(uidOf(pod));
  assert.deepEqual(csi.driver.steps(), ["NodePublishVolume", "NodeUnpublishVolume"]);
  await assert.rejects(stat(csi.staging("vol-c")), { code: "ENOENT" });
});

test(
  "a volume that lives with its pod: its own handle, no staging, no attachment, gone with the pod",
  needsRoot,
  async () => {
    await using csi = await CsiNode.create();
    csi.cluster.driver(driver, { volumeLifecycleModes: ["Ephemeral"], podInfoOnMount: true });
    csi.cluster.secrets.set("default/creds", { data: { user: Buffer.from("me").toString("base64") } });
    const volume = inline({
      volumeAttributes: { size: "1Gi" },
      nodePublishSecretRef: { name: "creds" },
      readOnly: true,
    });
    const pod = podWithVolumes([volume], { serviceAccountName: "builder" });
    await csi.node.volumes.mount(pod, never);
    const { name, namespace, uid } = pod.metadata;
    const handle = `csi-${createHash("sha256").update(`${uid}v`).digest("hex")}`;
    const request = csi.driver.lastCall("NodePublishVolume");
    assert.equal(request["volumeId"], handle);
    assert.equal(request["readonly"], true);
    assert.deepEqual(request["secrets"], { user: "me" });
    assert.deepEqual(request["volumeContext"], {
      size: "1Gi",
      "csi.storage.k8s.io/pod.name": name,
      "csi.storage.k8s.io/pod.namespace": namespace,
      "csi.storage.k8s.io/pod.uid": uid,
      "csi.storage.k8s.io/serviceAccount.name": "builder",
      "csi.storage.k8s.io/ephemeral": "true",
    });
    await csi.node.volumes.unmount(uidOf(pod));
    assert.deepEqual(csi.driver.steps(), ["NodePublishVolume", "NodeUnpublishVolume"]);
  },
);

for (const { name, modes, problem } of [
  { name: "no CSIDriver object", modes: undefined, problem: "no CSIDriver object" },
  { name: "only persistent ones", modes: ["Persistent"], problem: 'only supports ["Persistent"]' },
]) {
  test(`a volume that lives with its pod is refused: ${name}`, needsRoot, async () => {
    await using csi = await CsiNode.create();
    if (modes !== undefined) csi.cluster.driver(driver, { volumeLifecycleModes: modes });
    const message = await refused(csi, podWithVolumes([inline()]));
    assert.ok(message.includes(`volume mode "Ephemeral" not supported by driver ${driver} (${problem})`), message);
    assert.deepEqual(csi.driver.steps(), []);
  });
}

test("tokens for the driver, published again and again when it asks for that", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.cluster.driver(driver, {
    volumeLifecycleModes: ["Ephemeral"],
    requiresRepublish: true,
    tokenRequests: [{ audience: "vault", expirationSeconds: 600 }, { audience: "" }],
  });
  const pod = podWithVolumes([inline()], { serviceAccountName: "builder" });
  await csi.node.volumes.mount(pod, never);
  const context = csi.driver.lastCall("NodePublishVolume")["volumeContext"] as Record<string, string>;
  const tokens = JSON.parse(context["csi.storage.k8s.io/serviceAccount.tokens"] ?? "{}");
  assert.deepEqual(Object.keys(tokens).sort(), ["", "vault"]);
  assert.equal(tokens["vault"].token, "t1");
  assert.match(tokens["vault"].expirationTimestamp, /^\d{4}-/);
  await eventually("it was published again", () => csi.driver.steps().length >= 3);
  assert.equal(csi.tokens.length, 2, "tokens are kept while they are good");
  // A failing renewal leaves the pod's volume as it is.
  csi.driver.failures.set("NodePublishVolume", { error: new DriverFailure(13, "no"), when: "before" });
  await eventually("an event tells", () => csi.node.events.length > 0);
  assert.equal(await isMountPoint(targetOf(csi, pod, "v")), true);
  assert.equal(csi.node.volumes.of(uidOf(pod)).size, 1);
  csi.driver.failures.clear();
  await csi.node.volumes.unmount(uidOf(pod));
  assert.deepEqual(await csi.node.mounts(), []);
});

for (const { name, abilities, policy, fsType, accessModes, readOnly, expected } of [
  {
    name: "by default, writable by one node with a file system",
    policy: undefined,
    fsType: "ext4",
    accessModes: ["ReadWriteOnce"],
    expected: "agent",
  },
  {
    name: "by default, no file system named",
    policy: undefined,
    fsType: "",
    accessModes: ["ReadWriteOnce"],
    expected: "nobody",
  },
  {
    name: "by default, shared by nodes",
    policy: undefined,
    fsType: "ext4",
    accessModes: ["ReadWriteMany"],
    expected: "nobody",
  },
  { name: "policy None", policy: "None", fsType: "ext4", accessModes: ["ReadWriteOnce"], expected: "nobody" },
  { name: "policy File", policy: "File", fsType: "", accessModes: ["ReadWriteMany"], expected: "agent" },
  {
    name: "read-only",
    policy: "File",
    fsType: "ext4",
    accessModes: ["ReadWriteOnce"],
    readOnly: true,
    expected: "nobody",
  },
  {
    name: "the driver does it",
    abilities: ["stage", "mountGroup"] as const,
    policy: "File",
    fsType: "ext4",
    accessModes: ["ReadWriteOnce"],
    expected: "driver",
  },
]) {
  test(`who gives the files to the pod's group: ${name}`, needsRoot, async () => {
    await using csi = await CsiNode.create(abilities === undefined ? {} : { abilities });
    if (policy !== undefined) csi.cluster.driver(driver, { fsGroupPolicy: policy });
    csi.bind("c", { accessModes }, { fsType });
    const pod = podWithVolumes([claimed("c", readOnly)], { securityContext: { fsGroup: 4321 } });
    await csi.node.volumes.mount(pod, never);
    const { gid } = await stat(csi.driver.dataOf("vol-c"));
    const { mount } = csi.driver.lastCall("NodePublishVolume")["volumeCapability"] as {
      mount: { volumeMountGroup: string };
    };
    assert.deepEqual(
      [gid, mount.volumeMountGroup],
      [expected === "agent" ? 4321 : 0, expected === "driver" ? "4321" : ""],
    );
  });
}

for (const { mode, plain, fine } of [
  { mode: "ReadWriteOnce", plain: 1, fine: 7 },
  { mode: "ReadOnlyMany", plain: 3, fine: 3 },
  { mode: "ReadWriteMany", plain: 5, fine: 5 },
  { mode: "ReadWriteOncePod", plain: 1, fine: 6 },
]) {
  test(`access mode ${mode} in the driver's terms`, needsRoot, async () => {
    for (const [abilities, expected] of [
      [[], plain],
      [["singleNodeMultiWriter"], fine],
    ] as const) {
      await using csi = await CsiNode.create({ abilities });
      csi.bind("c", { accessModes: [mode, "ReadWriteMany"] });
      await csi.node.volumes.mount(podWithVolumes([claimed("c")]), never);
      const { accessMode } = csi.driver.lastCall("NodePublishVolume")["volumeCapability"] as {
        accessMode: { mode: number };
      };
      assert.equal(accessMode.mode, expected);
    }
  });
}

test("secrets for staging and publishing are read each time, and a missing one is named", needsRoot, async () => {
  await using csi = await CsiNode.create();
  const secretOf = (name: string) => ({ namespace: "kube-system", name });
  csi.bind("c", {}, { nodeStageSecretRef: secretOf("stage"), nodePublishSecretRef: secretOf("publish") });
  const pod = podWithVolumes([claimed("c")]);
  assert.match(
    await refused(csi, pod),
    /MountVolume\.MountDevice failed for volume "pv-c" : failed to get secret kube-system\/stage: secrets "stage" not found/,
  );
  csi.cluster.secrets.set("kube-system/stage", { data: { k: "cw==" } });
  csi.cluster.secrets.set("kube-system/publish", { data: { k: "cA==" } });
  csi.node.volumes.retryNow();
  await eventually("it works now", () => csi.node.ready.length > 0);
  assert.deepEqual(csi.driver.lastCall("NodeStageVolume")["secrets"], { k: "s" });
  assert.deepEqual(csi.driver.lastCall("NodePublishVolume")["secrets"], { k: "p" });
});

test("waits until the cluster has attached the volume, and says nothing about it in events", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  csi.cluster.attached = new Set();
  const pod = podWithVolumes([claimed("c")]);
  assert.match(await refused(csi, pod), /unattached volumes=\[v\].*Volume not attached according to node status/);
  assert.deepEqual(csi.node.events, []);
  assert.deepEqual(csi.kind.volumesInUse(), [`kubernetes.io/csi/${driver}^vol-c`], "so that the cluster attaches it");
  csi.cluster.attached = "all";
  csi.node.volumes.retryNow();
  await eventually("it is mounted", () => csi.node.ready.length > 0);
});

for (const { name, change, problem } of [
  {
    name: "there is none",
    change: (csi: CsiNode) => csi.cluster.attachments.clear(),
    problem:
      /volume vol-c has GET error for volume attachment csi-\w+: volumeattachments.storage.k8s.io "csi-\w+" not found/,
  },
  {
    name: "not attached",
    change: (csi: CsiNode, key: string) =>
      csi.cluster.attachments.set(key, {
        spec: { attacher: driver, nodeName: "n", source: {} },
        status: { attached: false },
      }),
    problem: /volume vol-c is not attached for volume attachment csi-/,
  },
  {
    name: "attaching failed",
    change: (csi: CsiNode, key: string) =>
      csi.cluster.attachments.set(key, {
        spec: { attacher: driver, nodeName: "n", source: {} },
        status: { attached: false, attachError: { message: "disk is broken" } },
      }),
    problem: /: disk is broken/,
  },
  {
    name: "being deleted",
    change: (csi: CsiNode, key: string) =>
      csi.cluster.attachments.set(key, {
        metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" },
        spec: { attacher: driver, nodeName: "n", source: {} },
        status: { attached: true },
      }),
    problem: /volume attachment is being deleted/,
  },
]) {
  test(`the attachment can't be used: ${name}`, needsRoot, async () => {
    await using csi = await CsiNode.create();
    csi.bind("c");
    change(csi, [...csi.cluster.attachments.keys()][0] ?? "");
    const message = await refused(csi, podWithVolumes([claimed("c")]));
    assert.match(message, /MountVolume\.WaitForAttach failed for volume "pv-c" : /);
    assert.match(message, problem);
    assert.deepEqual(csi.driver.steps(), []);
  });
}

test("a driver without attachments needs neither the object nor the node's status", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.cluster.driver(driver, { attachRequired: false });
  csi.bind("c");
  csi.cluster.attachments.clear();
  csi.cluster.attached = new Set();
  await csi.node.volumes.mount(podWithVolumes([claimed("c")]), never);
  assert.deepEqual(csi.driver.lastCall("NodePublishVolume")["publishContext"], {});
  assert.deepEqual(csi.kind.volumesInUse(), []);
});

test(
  "a clear refusal leaves nothing on disk; in doubt the record stays, and the driver is asked to undo",
  needsRoot,
  async () => {
    await using csi = await CsiNode.create();
    csi.bind("c");
    const pod = podWithVolumes([claimed("c")]);
    const place = csi.node.volumePath(uidOf(pod), "kubernetes.io/csi", "pv-c");
    csi.driver.failures.set("NodePublishVolume", { error: new DriverFailure(3, "no such pool"), when: "before" });
    assert.match(
      await refused(csi, pod),
      /MountVolume\.SetUp failed for volume "pv-c" : rpc error: code = InvalidArgument desc = no such pool/,
    );
    await assert.rejects(stat(place), { code: "ENOENT" });

    // Done, but the answer got lost.
    csi.driver.failures.set("NodePublishVolume", { error: new DriverFailure(14, "lost"), when: "after" });
    csi.node.volumes.retryNow();
    await eventually("it was tried again", () => csi.node.events.length > 1);
    assert.equal(await isMountPoint(join(place, "mount")), true);
    assert.equal(csi.node.volumes.of(uidOf(pod)).size, 0, "never used while in doubt");
    await csi.node.volumes.unmount(uidOf(pod));
    assert.deepEqual(csi.driver.steps().slice(-2), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
    assert.deepEqual(await csi.node.mounts(), []);
  },
);

test("a refused staging leaves nothing on disk", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  csi.driver.failures.set("NodeStageVolume", { error: new DriverFailure(9, "not formatted"), when: "before" });
  const pod = podWithVolumes([claimed("c")]);
  assert.match(
    await refused(csi, pod),
    /MountVolume\.MountDevice failed for volume "pv-c" : rpc error: code = FailedPrecondition desc = not formatted/,
  );
  await assert.rejects(stat(csi.staging("vol-c")), { code: "ENOENT" });
  await csi.node.volumes.unmount(uidOf(pod));
});

test("a driver that leaves its mount behind after unpublishing does not cost any data", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  await writeFile(join(targetOf(csi, pod, "pv-c"), "precious"), "1");
  csi.driver.forgetsToUnmount = true;
  await assert.rejects(
    csi.node.volumes.unmount(uidOf(pod)),
    /mount is still mounted although its driver was asked to unpublish it; it was not removed/,
  );
  assert.equal(await readFile(join(csi.driver.dataOf("vol-c"), "precious"), "utf8"), "1");
  assert.equal(csi.driver.steps().includes("NodeUnstageVolume"), false);
  const report = await csi.node.volumes.cleanOrphans(new Set(), never);
  assert.equal(report.problems.length, 1);
  csi.driver.forgetsToUnmount = false;
  await csi.node.volumes.unmount(uidOf(pod));
  assert.equal(await readFile(join(csi.driver.dataOf("vol-c"), "precious"), "utf8"), "1");
  assert.deepEqual(await csi.node.mounts(), []);
});

test("driver away: mounting and unmounting wait for it, and go on when it is back", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  csi.bind("d");
  const [running, waiting] = [podWithVolumes([claimed("c")]), podWithVolumes([claimed("d")])];
  await csi.node.volumes.mount(running, never);
  await csi.driver.stop();
  await eventually("it is gone", () => csi.drivers.names().length === 0);
  assert.match(
    await refused(csi, waiting),
    /driver name csi\.example\.com not found in the list of registered CSI drivers/,
  );
  await assert.rejects(csi.node.volumes.unmount(uidOf(running)), /not found in the list of registered CSI drivers/);
  assert.equal(await isMountPoint(targetOf(csi, running, "pv-c")), true);
  await csi.driver.start();
  await eventually("the waiting pod has its volume", () => csi.node.ready.includes(uidOf(waiting)));
  await csi.node.volumes.unmount(uidOf(running));
  await csi.node.volumes.unmount(uidOf(waiting));
  assert.deepEqual(await csi.node.mounts(), []);
});

test(
  "agent restart: a running pod keeps its volume; one that ended meanwhile is taken away from the records alone",
  needsRoot,
  async () => {
    await using csi = await CsiNode.create();
    csi.bind("c");
    csi.bind("d");
    const [kept, ended] = [podWithVolumes([claimed("c")]), podWithVolumes([claimed("d")])];
    for (const pod of [kept, ended]) await csi.node.volumes.mount(pod, never);
    await writeFile(join(targetOf(csi, kept, "pv-c"), "data"), "1");
    await csi.restart();
    assert.equal(csi.kind.volumesInUse().length, 2, "the cluster must not detach what may be in use");
    // The cluster forgot the claim: unmounting needs no API.
    csi.claims.claims.delete("d");
    csi.claims.persistentVolumes.delete("pv-d");
    csi.cluster.attachments.clear();
    csi.cluster.attach(driver, "vol-c");
    const report = await csi.node.volumes.cleanOrphans(new Set([uidOf(kept)]), never);
    assert.deepEqual(report, { removed: [uidOf(ended)], problems: [] });
    csi.node.volumes.want(kept);
    await eventually("it is known again", () => csi.node.volumes.of(uidOf(kept)).size === 1);
    assert.equal(await readFile(join(targetOf(csi, kept, "pv-c"), "data"), "utf8"), "1");
    await csi.node.volumes.unmount(uidOf(kept));
    assert.equal(csi.driver.steps().filter((step) => step === "NodeUnstageVolume").length, 2);
    assert.deepEqual(await csi.node.mounts(), []);
  },
);

test("agent restart: an error of the driver does not take a running pod's volume away", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  await csi.restart();
  for (const method of ["NodeStageVolume", "NodePublishVolume"]) {
    csi.driver.failures.clear();
    csi.driver.failures.set(method, { error: new DriverFailure(13, "confused"), when: "before" });
    assert.match(await refused(csi, pod), /confused/);
    assert.equal(await isMountPoint(targetOf(csi, pod, "pv-c")), true, method);
    assert.equal(typeof JSON.parse(await readFile(join(csi.staging("vol-c"), "vol_data.json"), "utf8")), "object");
    await csi.node.volumes.unmount(uidOf(pod)).catch(() => {});
    csi.driver.failures.clear();
    await csi.node.volumes.mount(pod, never);
    await csi.restart();
  }
});

test("killed between unpublishing and unstaging: the next run lets the volume go", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  csi.driver.failures.set("NodeUnstageVolume", { error: new DriverFailure(14, "away"), when: "before" });
  await assert.rejects(csi.node.volumes.unmount(uidOf(pod)), /away/);
  csi.driver.failures.clear();
  await csi.restart();
  await csi.node.volumes.cleanOrphans(new Set(), never);
  assert.deepEqual(await csi.node.mounts(), []);
  await assert.rejects(stat(csi.staging("vol-c")), { code: "ENOENT" });
});

test(
  "a damaged record: nothing is guessed while the volume is mounted, nothing is left when it is not",
  needsRoot,
  async () => {
    await using csi = await CsiNode.create();
    csi.bind("c");
    const pod = podWithVolumes([claimed("c")]);
    await csi.node.volumes.mount(pod, never);
    const record = join(csi.node.volumePath(uidOf(pod), "kubernetes.io/csi", "pv-c"), "vol_data.json");
    await truncate(record, 20);
    await csi.restart();
    await assert.rejects(csi.node.volumes.unmount(uidOf(pod)), /is mounted, but .*vol_data\.json is damaged/);
    assert.equal(await isMountPoint(targetOf(csi, pod, "pv-c")), true);
    execFileSync("umount", [targetOf(csi, pod, "pv-c")]);
    await csi.node.volumes.unmount(uidOf(pod));
    assert.deepEqual(await readdir(join(csi.node.podsDir, uidOf(pod))), []);
  },
);

test("grows with its claim at mounting, and tells the cluster", needsRoot, async () => {
  await using csi = await CsiNode.create({ abilities: ["stage", "expand"] });
  csi.bind("c", { capacity: { storage: "2Gi" } });
  const claim = csi.claims.claims.get("c");
  const status = {
    phase: "Bound",
    capacity: { storage: "1Gi" },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
  };
  csi.claims.claims.set("c", { ...claim, status });
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  const request = csi.driver.lastCall("NodeExpandVolume");
  assert.deepEqual(request["capacityRange"], { requiredBytes: 2n << 30n, limitBytes: 0n });
  assert.equal(request["volumePath"], targetOf(csi, pod, "pv-c"));
  assert.deepEqual(csi.cluster.resizes, [{ state: "in progress" }, { state: "done", capacity: "2Gi" }]);
  assert.deepEqual(
    csi.node.events.map(({ reason, message }) => [reason, message]),
    [["FileSystemResizeSuccessful", `MountVolume.NodeExpandVolume succeeded for volume "pv-c" ${testNodeName}`]],
  );
});

for (const { code, name, waits, report } of [
  { code: 3, name: "infeasible", waits: false, report: { state: "failed", isInfeasible: true } },
  { code: 9, name: "not while in use", waits: false, report: undefined },
  { code: 13, name: "any other", waits: true, report: { state: "failed", isInfeasible: false } },
]) {
  test(`growing fails: ${name}`, needsRoot, async () => {
    await using csi = await CsiNode.create({ abilities: ["expand"] });
    csi.bind("c", { capacity: { storage: "2Gi" } });
    const status = {
      phase: "Bound",
      capacity: { storage: "1Gi" },
      allocatedResourceStatuses: { storage: "NodeResizePending" },
    };
    csi.claims.claims.set("c", { ...csi.claims.claims.get("c"), status });
    csi.driver.failures.set("NodeExpandVolume", { error: new DriverFailure(code, "no space"), when: "before" });
    const pod = podWithVolumes([claimed("c")]);
    if (waits) assert.match(await refused(csi, pod), /while expanding volume: rpc error/);
    else await csi.node.volumes.mount(pod, never);
    const last = csi.cluster.resizes.at(-1);
    if (report === undefined) assert.deepEqual(last, { state: "in progress" });
    else assert.deepEqual(last, { ...report, message: last?.state === "failed" ? last.message : "" });
  });
}

test("grows while a pod uses it, as soon as the cluster says so", needsRoot, async () => {
  await using csi = await CsiNode.create({ abilities: ["stage", "expand"] });
  csi.bind("c", { capacity: { storage: "1Gi" } });
  const claim = csi.claims.claims.get("c");
  csi.claims.claims.set("c", { ...claim, status: { phase: "Bound", capacity: { storage: "1Gi" } } });
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  assert.deepEqual(csi.driver.steps(), ["NodeStageVolume", "NodePublishVolume"]);
  csi.claims.outage = new Error("away for a while");
  const { persistentVolumes } = csi.claims;
  const volume = persistentVolumes.get("pv-c");
  persistentVolumes.set("pv-c", { ...volume, spec: { ...volume?.spec, capacity: { storage: "3Gi" } } });
  const status = {
    phase: "Bound",
    capacity: { storage: "1Gi" },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
  };
  csi.claims.claims.set("c", { ...claim, status });
  await systemClock.sleep(200, never);
  assert.deepEqual(csi.node.events, [], "that the API server is away is no trouble of the pod");
  csi.claims.outage = undefined;
  await eventually("the driver was asked", () => csi.driver.steps().includes("NodeExpandVolume"));
  await eventually("the cluster was told", () => csi.cluster.resizes.length >= 2);
  assert.deepEqual(csi.cluster.resizes.slice(0, 2), [{ state: "in progress" }, { state: "done", capacity: "3Gi" }]);
  assert.equal(csi.driver.steps().filter((step) => step === "NodePublishVolume").length, 1);
});

test("a claim that points to another volume while the pod runs changes nothing for the pod", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  csi.bind("d");
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  const swapped = csi.claims.claims.get("c");
  csi.claims.claims.set("c", { ...swapped, spec: { volumeName: "pv-d" } });
  const other = csi.claims.persistentVolumes.get("pv-d");
  csi.claims.persistentVolumes.set("pv-d", { ...other, spec: { ...other?.spec, claimRef: { uid: "claim-c" } } });
  await systemClock.sleep(200, never);
  assert.deepEqual(csi.driver.steps(), ["NodeStageVolume", "NodePublishVolume"]);
  await csi.node.volumes.unmount(uidOf(pod));
  assert.equal(csi.driver.lastCall("NodeUnpublishVolume")["volumeId"], "vol-c");
});

test("block volumes: staged, published, mapped to a device of the pod, and back", needsRoot, async (t) => {
  const state: { device: string } = { device: "" };
  await using csi = await CsiNode.create({ deviceOf: () => state.device });
  try {
    const file = join(csi.node.root, "disk.img");
    execFileSync("truncate", ["-s", "8M", file]);
    state.device = execFileSync("losetup", ["--show", "-f", file], { encoding: "utf8" }).trim();
  } catch (error) {
    t.skip(`no loop device: ${String(error)}`);
    return;
  }
  try {
    csi.bind("c", { volumeMode: "Block" });
    const spec = { containers: [{ name: "main", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/x" }] }] };
    const pod = podWithVolumes([claimed("c")], spec);
    await csi.node.volumes.mount(pod, never);
    const link = join(csi.node.podsDir, uidOf(pod), "volumeDevices/kubernetes.io~csi/pv-c");
    assert.deepEqual(csi.node.volumes.of(uidOf(pod)).get("v"), { type: "block", devicePath: link, readOnly: false });
    assert.equal((await stat(link)).rdev, (await stat(state.device)).rdev);
    const base = join(csi.node.root, "plugins/kubernetes.io/csi/volumeDevices");
    assert.equal(csi.driver.lastCall("NodeStageVolume")["stagingTargetPath"], join(base, "staging/pv-c"));
    assert.equal(csi.driver.lastCall("NodePublishVolume")["targetPath"], join(base, "publish/pv-c", uidOf(pod)));
    await csi.restart();
    await csi.node.volumes.mount(pod, never);
    await csi.node.volumes.unmount(uidOf(pod));
    assert.deepEqual(csi.driver.steps().slice(-2), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
    assert.deepEqual(await csi.node.mounts(), []);
    assert.deepEqual(await readdir(base), ["publish", "staging"]);
    assert.deepEqual(await readdir(join(base, "publish")), []);
    assert.deepEqual(await readdir(join(base, "staging")), []);
  } finally {
    execFileSync("losetup", ["-d", state.device]);
  }
});

test("many pods of one volume come and go at once: staged once, unstaged once", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c", { accessModes: ["ReadWriteMany"] });
  const pods = Array.from({ length: 12 }, () => podWithVolumes([claimed("c")]));
  await Promise.all(pods.map((pod) => csi.node.volumes.mount(pod, never)));
  await Promise.all(pods.map((pod) => csi.node.volumes.unmount(uidOf(pod))));
  const count = (step: string) => csi.driver.steps().filter((candidate) => candidate === step).length;
  assert.deepEqual(
    ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"].map(count),
    [1, 12, 12, 1],
  );
  assert.deepEqual(await csi.node.mounts(), []);
});
