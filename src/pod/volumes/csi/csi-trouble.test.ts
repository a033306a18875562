import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { DriverFailure } from "../../../../test/support/csi-driver.ts";
import { CsiNode, claimed, driver, refused, targetOf } from "../../../../test/support/csi-node.ts";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import { isMountPoint } from "../../../connections/host/index.ts";
import { uidOf } from "../../../ground/model/index.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;

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
    await until("it was tried again", () => csi.node.events.length > 1);
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
  const report = await csi.node.volumes.cleanOrphanedDirectories(new Set(), never);
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
  await until("it is gone", () => csi.drivers.names().length === 0);
  assert.match(
    await refused(csi, waiting),
    /driver name csi\.example\.com not found in the list of registered CSI drivers/,
  );
  await assert.rejects(csi.node.volumes.unmount(uidOf(running)), /not found in the list of registered CSI drivers/);
  assert.equal(await isMountPoint(targetOf(csi, running, "pv-c")), true);
  await csi.driver.start();
  await until("the waiting pod has its volume", () => csi.node.ready.includes(uidOf(waiting)));
  await csi.node.volumes.unmount(uidOf(running));
  await csi.node.volumes.unmount(uidOf(waiting));
  assert.deepEqual(await csi.node.mounts(), []);
});

test("one that never got its share of a volume does not keep it staged", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  const [user, hopeful] = [podWithVolumes([claimed("c")]), podWithVolumes([claimed("c")])];
  await csi.node.volumes.mount(user, never);
  await csi.driver.stop();
  await until("it is gone", () => csi.drivers.names().length === 0);
  await refused(csi, hopeful);
  await csi.node.volumes.unmount(uidOf(hopeful));
  await csi.driver.start();
  await until("it is back", () => csi.drivers.names().length === 1);
  await csi.node.volumes.unmount(uidOf(user));
  assert.deepEqual(csi.driver.steps().slice(-2), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
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
    const report = await csi.node.volumes.cleanOrphanedDirectories(new Set([uidOf(kept)]), never);
    assert.deepEqual(report, { removed: [uidOf(ended)], problems: [] });
    csi.node.volumes.want(kept);
    await until("it is known again", () => csi.node.volumes.of(uidOf(kept)).size === 1);
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
  await csi.node.volumes.cleanOrphanedDirectories(new Set(), never);
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
