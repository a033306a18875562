import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { testNodeName } from "../../../../test/support/csi-cluster.ts";
import { CsiNode, claimed, driver, targetOf } from "../../../../test/support/csi-node.ts";
import { goWithout } from "../../../../test/support/missing.ts";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import { isMountPoint } from "../../../connections/host/index.ts";
import { uidOf } from "../../../ground/model/index.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;

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
      relabel: false,
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

test("block volumes: staged, published, mapped to a device of the pod, and back", needsRoot, async (t) => {
  const state: { device: string } = { device: "" };
  await using csi = await CsiNode.create({ deviceOf: () => state.device });
  try {
    const file = join(csi.node.root, "disk.img");
    execFileSync("truncate", ["-s", "8M", file]);
    state.device = execFileSync("losetup", ["--show", "-f", file], { encoding: "utf8" }).trim();
  } catch (error) {
    goWithout(t, `no loop device: ${String(error)}`);
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
    await untilReleased(() => csi.node.volumes.unmount(uidOf(pod)));
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

/** As pods do: whoever looks at the machine's devices (losetup of another test) keeps one busy for a moment. */
async function untilReleased(release: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await release();
    } catch (error) {
      if (!/EBUSY/.test(String(error)) || tries === 100) throw error;
      await sleep(100);
    }
  }
}
