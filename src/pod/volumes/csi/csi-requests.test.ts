import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { test } from "node:test";
import { DriverFailure } from "../../../../test/support/csi-driver.ts";
import { CsiNode, claimed, driver, inline, refused, targetOf } from "../../../../test/support/csi-node.ts";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import { isMountPoint } from "../../../connections/host/index.ts";
import { uidOf } from "../../../ground/model/index.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;

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
  await until("it was published again", () => csi.driver.steps().length >= 3);
  assert.equal(csi.tokens.length, 2, "tokens are kept while they are good");
  // A failing renewal leaves the pod's volume as it is.
  csi.driver.failures.set("NodePublishVolume", { error: new DriverFailure(13, "no"), when: "before" });
  await until("an event tells", () => csi.node.events.length > 0);
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
  await until("it works now", () => csi.node.ready.length > 0);
  assert.deepEqual(csi.driver.lastCall("NodeStageVolume")["secrets"], { k: "s" });
  assert.deepEqual(csi.driver.lastCall("NodePublishVolume")["secrets"], { k: "p" });
});
