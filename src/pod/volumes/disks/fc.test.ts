import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { bareDisk } from "../../../../test/support/bare-disk.ts";
import { StorageNetwork } from "../../../../test/support/storage-network.ts";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import { isMountPoint, readMounts } from "../../../connections/host/index.ts";
import { ifThere } from "../../../ground/base/index.ts";
import { type FCVolumeSource, uidOf } from "../../../ground/model/index.ts";
import { addressNamed, fcDirectory } from "./fc-record.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;

for (const { name, source, by, names, directory, map } of [
  {
    name: "by the port and the unit",
    source: { targetWWNs: ["50060e801049cfd1"], lun: 2 },
    by: "by-path",
    names: ["pci-0000:01:00.0-fc-0x50060e801049cfd1-lun-2", "pci-0000:01:00.0-fc-0x50060e801049cfd1-lun-22"],
    directory: "50060e801049cfd1-lun-2",
    map: undefined,
  },
  {
    name: "by its own name, with several paths",
    source: { wwids: ["VENDOR 3600508b400105e21"] },
    by: "by-id",
    names: ["scsi-VENDOR_3600508b400105e21"],
    directory: "VENDOR_3600508b400105e21",
    map: "dm-3",
  },
] as const) {
  test(
    `a disk of a Fibre Channel ${name}: mounted, and taken from the node after its last pod`,
    needsRoot,
    async (t) => {
      const network = new StorageNetwork(await mkdtemp(join(tmpdir(), "nodelet-storage-")));
      t.after(() => rm(network.root, { recursive: true }));
      const device = bareDisk(t, network.root);
      if (device === undefined) return;
      network.map = map;
      for (const link of names) await network.show(by, link, device);
      await using node = await VolumeNode.create({ run: network.run, deviceRoot: network.root });
      const fc: FCVolumeSource = { ...source, fsType: "ext4" };
      const [first, second] = [podWithVolumes([{ name: "v", fc }]), podWithVolumes([{ name: "v", fc }])];
      await node.volumes.mount(first, never);
      await node.volumes.mount(second, never);
      const place = join(node.root, "plugins/kubernetes.io/fc", directory);
      assert.ok(await isMountPoint(place));
      assert.ok(await isMountPoint(node.volumePath(uidOf(first), "kubernetes.io/fc", "v")));
      assert.equal((await readMounts()).find(({ mountPoint }) => mountPoint === place)?.source, device);
      await node.restart();
      await node.volumes.unmount(uidOf(first));
      assert.ok(await isMountPoint(place));
      await node.volumes.unmount(uidOf(second));
      assert.equal(await ifThere(stat(place)), undefined);
      assert.deepEqual(await network.shown(), names.slice(1));
      const flush = map === undefined ? [] : [`multipath -f ${join(network.root, "dev", map)}`];
      assert.deepEqual(network.calls, [...flush, "/sys/block/sda/device/delete < 1"]);
    },
  );
}

test("a disk that is not there is looked for everywhere, and then said to be missing", async (t) => {
  const network = new StorageNetwork(await mkdtemp(join(tmpdir(), "nodelet-storage-")));
  t.after(() => rm(network.root, { recursive: true }));
  await network.logIn("10.0.0.1:3260", "iqn.x");
  await using node = await VolumeNode.create({ run: network.run, deviceRoot: network.root });
  for (const [fc, problem] of [
    [{ targetWWNs: ["50060e801049cfd1"], lun: 0 }, /WaitForAttach failed for volume "v" : no fc disk found/],
    [{ targetWWNs: ["x"] }, /fc: no fc disk information found. failed to make a new mounter/],
    [{ wwids: ["../x"] }, /fc: "\.\.\/x" is not the name of a disk/],
  ] as const) {
    await assert.rejects(node.volumes.mount(podWithVolumes([{ name: "v", fc }]), never), problem);
  }
  assert.deepEqual(network.calls, ["/sys/class/scsi_host/host1/scan < - - -"]);
});

test("a name with a dash in it is not taken for the names of other disks", async (t) => {
  const network = new StorageNetwork(await mkdtemp(join(tmpdir(), "nodelet-storage-")));
  t.after(() => rm(network.root, { recursive: true }));
  await network.show("by-id", "scsi-own", "/dev/null");
  await using node = await VolumeNode.create({ run: network.run, deviceRoot: network.root });
  const pod = podWithVolumes([{ name: "v", fc: { wwids: ["x-own"] } }]);
  await assert.rejects(node.volumes.mount(pod, never), /no fc disk found/);
  await node.volumes.unmount(uidOf(pod));
  await node.volumes.cleanOrphanedDirectories(new Set(), never);
  assert.deepEqual(network.calls, []);
  assert.deepEqual(await ifThere(readdir(join(node.root, "plugins/kubernetes.io/fc"))), []);
});

test("names of places are read back", () => {
  for (const address of [
    { by: "wwns", wwns: ["a1", "b2"], lun: 3 },
    { by: "wwids", wwids: ["360"] },
    { by: "wwids", wwids: ["360", "361"] },
  ] as const) {
    assert.deepEqual(addressNamed(fcDirectory(address)), address);
  }
  assert.equal(addressNamed("lun-3"), undefined);
});
