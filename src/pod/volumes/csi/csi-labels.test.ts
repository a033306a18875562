import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { CsiNode, claimed, driver, refused } from "../../../../test/support/csi-node.ts";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import { type IdentifiedPod, uidOf } from "../../../ground/model/index.ts";
import { MountLabels } from "../kinds/selinux.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;
const labels = new MountLabels("system_u:object_r:container_file_t:s0", {
  ofOnePod: true,
  ofMany: true,
  byChoice: true,
});
const podAt = (level: string): IdentifiedPod =>
  podWithVolumes([claimed("c")], { securityContext: { seLinuxOptions: { level } } });

/** The options of mount(8) in the last request. */
function flagsOf(csi: CsiNode, call: "NodeStageVolume" | "NodePublishVolume"): unknown {
  const { mount } = csi.driver.lastCall(call)["volumeCapability"] as { mount: { mountFlags: unknown } };
  return mount.mountFlags;
}

test("a driver that mounts with a SELinux label is told it, and a second label has to wait", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.labels = labels;
  await csi.restart();
  csi.cluster.driver(driver, { seLinuxMount: true });
  csi.bind("c", { mountOptions: ["noatime"], accessModes: ["ReadWriteMany"] });
  const pod = podAt("s0:c1,c2");
  await csi.node.volumes.mount(pod, never);
  const expected = ["noatime", 'context="system_u:object_r:container_file_t:s0:c1,c2"'];
  assert.deepEqual(flagsOf(csi, "NodeStageVolume"), expected);
  assert.deepEqual(flagsOf(csi, "NodePublishVolume"), expected);
  const volume = csi.node.volumes.of(uidOf(pod)).get("v");
  assert.equal(volume?.type === "filesystem" && volume.relabel, false);
  for (const directory of [csi.staging("vol-c"), csi.node.volumePath(uidOf(pod), "kubernetes.io/csi", "pv-c")]) {
    const record = JSON.parse(await readFile(join(directory, "vol_data.json"), "utf8")) as Record<string, string>;
    assert.equal(record["seLinuxMountContext"], "system_u:object_r:container_file_t:s0:c1,c2");
  }
  const problem =
    /waiting for unmount of volume "pv-c", because it is already mounted to a different pod with a different SELinux label/;
  assert.match(await refused(csi, podAt("s0:c3,c4")), problem);
  await csi.restart();
  assert.match(await refused(csi, podAt("s0:c3,c4")), problem);
  const other = podAt("s0:c1,c2");
  await csi.node.volumes.mount(other, never);
  for (const user of [pod, other]) await csi.node.volumes.unmount(uidOf(user));
  const next = podAt("s0:c3,c4");
  await csi.node.volumes.mount(next, never);
  assert.deepEqual(flagsOf(csi, "NodeStageVolume"), [
    "noatime",
    'context="system_u:object_r:container_file_t:s0:c3,c4"',
  ]);
});

test("a driver that can't, and a node without SELinux, are told of no label", needsRoot, async () => {
  for (const on of [true, false]) {
    await using csi = await CsiNode.create();
    csi.labels = on ? labels : undefined;
    await csi.restart();
    csi.cluster.driver(driver, { seLinuxMount: !on });
    csi.bind("c", { accessModes: ["ReadWriteOncePod"] });
    const pod = podAt("s0:c1,c2");
    await csi.node.volumes.mount(pod, never);
    assert.deepEqual(flagsOf(csi, "NodeStageVolume"), []);
    // Here no file system has labels, so the runtime has none to give where it would.
    const volume = csi.node.volumes.of(uidOf(pod)).get("v");
    assert.equal(volume?.type === "filesystem" && volume.relabel, !on);
  }
});
