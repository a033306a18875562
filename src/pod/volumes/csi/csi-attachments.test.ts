import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiNode, claimed, driver, refused } from "../../../../test/support/csi-node.ts";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import { uidOf } from "../../../ground/model/index.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;

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
  await until("it is mounted", () => csi.node.ready.length > 0);
});

test("a pod that goes before the cluster has attached its volume leaves it to be detached", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  csi.cluster.attached = new Set();
  const pod = podWithVolumes([claimed("c")]);
  await refused(csi, pod);
  assert.equal(csi.kind.volumesInUse().length, 1);
  await csi.node.volumes.unmount(uidOf(pod));
  assert.deepEqual(csi.kind.volumesInUse(), []);
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
