import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { link, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CsiNode } from "../../../../test/support/csi-node.ts";
import { goWithout } from "../../../../test/support/missing.ts";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import { countFiles, loadSyscalls, readFileSystem, WalkTurns } from "../../../connections/host/index.ts";
import { systemClock } from "../../../ground/base/index.ts";
import { uidOf } from "../../../ground/model/index.ts";
import { usageByCounting, usageOfDevice } from "./disk-usage.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-stats-"));
});
after(() => rm(directory, { recursive: true, force: true }));

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;
const whole = { depth: "all" } as const;

function du(path: string): { bytes: number; inodes: number } {
  const ask = (...flags: string[]) =>
    Number(execFileSync("du", ["-s", "-x", ...flags, path], { encoding: "utf8" }).split("\t")[0] ?? "0");
  return { bytes: ask("-k") * 1024, inodes: ask("--inodes") };
}

test("counts as du does: sparse files, names of one file, links, empty and nested directories", async () => {
  const root = join(directory, "tree");
  await mkdir(join(root, "a/b/c"), { recursive: true });
  await writeFile(join(root, "big"), Buffer.alloc(300_000, 1));
  await link(join(root, "big"), join(root, "a/other-name"));
  await symlink("/", join(root, "a/link"));
  for (let index = 0; index < 100; index++) await writeFile(join(root, "a/b", `f${index}`), "x");
  execFileSync("truncate", ["-s", "1G", join(root, "sparse")]);
  assert.deepEqual(await countFiles(root, whole, never), du(root));
  const usage = await usageByCounting(root, new WalkTurns(systemClock), never);
  assert.equal(usage.usedBytes, BigInt(du(root).bytes));
  assert.equal(usage.capacityBytes, (await readFileSystem("/tmp")).capacityBytes);
});

test("stays on one file system", needsRoot, async () => {
  const root = join(directory, "mounted");
  await mkdir(join(root, "other"), { recursive: true });
  const calls = await loadSyscalls();
  calls.mount("tmpfs", join(root, "other"), "tmpfs", 0, "size=8m");
  try {
    await writeFile(join(root, "other/big"), Buffer.alloc(4_000_000, 1));
    const { bytes } = await countFiles(root, whole, never);
    assert.ok(bytes < 1_000_000, String(bytes));
  } finally {
    await calls.unmount(join(root, "other"), 0);
  }
});

test("can be given up", async () => {
  const stop = new AbortController();
  stop.abort(new Error("enough"));
  await assert.rejects(countFiles(directory, whole, stop.signal), /enough/);
});

test("the size of a device", needsRoot, async (t) => {
  const file = join(directory, "disk");
  execFileSync("truncate", ["-s", "16M", file]);
  let device: string;
  try {
    device = execFileSync("losetup", ["--show", "-f", file], { encoding: "utf8" }).trim();
  } catch (error) {
    goWithout(t, `no loop device: ${String(error)}`);
    return;
  }
  try {
    assert.equal((await usageOfDevice(device)).capacityBytes, 16n << 20n);
    await assert.rejects(usageOfDevice(file), /is not a block device/);
  } finally {
    execFileSync("losetup", ["-d", device]);
  }
});

test("a pod's volumes: what is measured, and what counts against the pod", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.configMap("m", { a: "1" });
  const pod = podWithVolumes([
    { name: "disk", emptyDir: { sizeLimit: "100Ki" } },
    { name: "roomy", emptyDir: { sizeLimit: "100Mi" } },
    { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
    { name: "map", configMap: { name: "m" } },
    { name: "host", hostPath: { path: "/tmp" } },
  ]);
  await node.volumes.mount(pod, never);
  const path = node.volumePath(uidOf(pod), "kubernetes.io/empty-dir", "disk");
  await writeFile(join(path, "big"), Buffer.alloc(300_000, 1));
  const measured = await node.volumes.measure(uidOf(pod), never);
  assert.deepEqual(
    measured.map(({ name, isLocalEphemeral }) => [name, isLocalEphemeral]),
    [
      ["disk", true],
      ["roomy", true],
      ["memory", false],
      ["map", true],
    ],
  );
  assert.equal(measured[2]?.usage.capacityBytes, 1n << 20n);
  assert.ok((measured[0]?.usage.usedBytes ?? 0n) >= 300_000n);
});

test(
  "a driver's volume: what the driver says, with the claim; nothing from a driver that does not know",
  needsRoot,
  async () => {
    for (const abilities of [["stage", "stats"], ["stage"]] as const) {
      await using csi = await CsiNode.create({ abilities });
      csi.bind("c");
      const pod = podWithVolumes([{ name: "v", persistentVolumeClaim: { claimName: "c" } }]);
      await csi.node.volumes.mount(pod, never);
      const measured = await csi.node.volumes.measure(uidOf(pod), never);
      if (abilities.length === 1) assert.deepEqual(measured, []);
      else {
        const usage = {
          capacityBytes: 1000n,
          availableBytes: 600n,
          usedBytes: 400n,
          inodes: 100n,
          inodesFree: 96n,
          inodesUsed: 4n,
        };
        assert.deepEqual(measured, [
          { name: "v", usage, claim: { namespace: "default", name: "c" }, isLocalEphemeral: false },
        ]);
      }
    }
  },
);
