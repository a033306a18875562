import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { HungMount } from "../../../../test/support/hung-mount.ts";
import { LoopDisk } from "../../../../test/support/loop-disk.ts";
import { MemoryClaims } from "../../../../test/support/memory-claims.ts";
import { soon, until } from "../../../../test/support/until.ts";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import { countFiles, foreignMountOf, isMountPoint, removeTree } from "../../../connections/host/index.ts";
import { systemClock, unlessAborted } from "../../../ground/base/index.ts";
import { uidOf } from "../../../ground/model/index.ts";
import { SilentFileSystemError, VolumeFiles } from "./volume-files.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-hung-"));
});
after(() => rm(directory, { recursive: true, force: true }));

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;
// Longer than anything here takes on a busy machine, and far shorter than for ever.

async function newDirectory(name: string): Promise<string> {
  const path = await mkdtemp(join(directory, `${name}-`));
  return path;
}

/** More looks than there are threads, none of which may be held. */
async function threadsAreFree(): Promise<void> {
  const work = Promise.all(Array.from({ length: 32 }, () => readFile("/proc/self/stat")));
  await unlessAborted(work, soon());
}

test("whether something is mounted is told without asking it, and so is where a path leads", needsRoot, async () => {
  const root = await newDirectory("ask");
  await mkdir(join(root, "server"));
  await symlink(join(root, "server/share"), join(root, "link"));
  await using hung = await HungMount.at(join(root, "server"));
  assert.equal(await unlessAborted(isMountPoint(hung.path), soon()), true);
  assert.equal(await unlessAborted(isMountPoint(join(root, "link")), soon()), false);
  for (const path of [
    hung.path,
    join(hung.path, "a/b"),
    join(root, "link"),
    join(root, "../", root.slice(directory.length), "link/x"),
  ]) {
    assert.equal(await unlessAborted(foreignMountOf(path, "/"), soon()), hung.path, path);
  }
  for (const path of [root, "/", "/proc/self", join(root, "absent/x")]) {
    assert.equal(await foreignMountOf(path, "/"), undefined, path);
  }
});

test("trees with a hung mount inside are counted and removed around it", needsRoot, async () => {
  const root = await newDirectory("inside");
  await mkdir(join(root, "a/server"), { recursive: true });
  await writeFile(join(root, "file"), Buffer.alloc(100_000, 1));
  {
    await using _hung = await HungMount.at(join(root, "a/server"));
    const { bytes } = await unlessAborted(countFiles(root, { depth: "all" }, never), soon());
    assert.ok(bytes >= 100_000);
    await assert.rejects(unlessAborted(removeTree(root), soon()), /mount point/);
  }
  await removeTree(root);
});

test(
  "each kind of work on a file system that hangs ends in time, holds no thread, and is not begun twice",
  needsRoot,
  async () => {
    const root = await newDirectory("work");
    const files = new VolumeFiles({ clock: systemClock, rootDir: "/", silenceMs: 300 });
    const target = join(root, "target");
    const jobs = {
      giveToGroup: (path: string) =>
        files.run(
          "giveToGroup",
          { root: path, ownership: { gid: 1, readOnly: false, policy: "Always" } },
          { path, owner: "pod" },
          never,
        ),
      createSubPath: (path: string) =>
        files.run("createSubPath", { volumePath: path, subPath: "a" }, { path, owner: "pod" }, never),
      mountSubPath: (path: string) =>
        files.run("mountSubPath", { volumePath: path, subPath: "a", target }, { path, owner: "pod" }, never),
      checkHostPath: (path: string) =>
        files.run("checkHostPath", { path, type: "Directory" }, { path, owner: "pod" }, never),
      lookAt: (path: string) => files.run("lookAt", { path: join(path, "a") }, { path, owner: "pod" }, never),
      usage: (path: string) => files.usage(path, "pod", never),
    };
    for (const [name, work] of Object.entries(jobs)) {
      const path = join(root, name);
      await mkdir(path);
      await using hung = await HungMount.at(path);
      await Promise.all(
        Array.from({ length: 6 }, () =>
          assert.rejects(unlessAborted<unknown>(work(hung.path), soon()), SilentFileSystemError),
        ),
      );
      await threadsAreFree();
    }
  },
);

test("work on another file system that answers is done, with news and errors as here", needsRoot, async () => {
  const root = await newDirectory("answers");
  await using disk = await LoopDisk.at(root);
  const files = new VolumeFiles({ clock: systemClock, rootDir: "/" });
  const path = join(disk.path, "volume");
  await mkdir(path);
  await writeFile(join(path, "file"), "");
  const task = { path, owner: "pod" };
  const ownership = { gid: 4321, readOnly: false, policy: "Always" } as const;
  assert.deepEqual(await files.run("giveToGroup", { root: path, ownership }, task, never), { files: 2 });
  assert.equal((await files.run("lookAt", { path: join(path, "file") }, task, never)).gid, 4321);
  await assert.rejects(files.run("lookAt", { path: join(path, "absent") }, task, never), { code: "ENOENT" });
  await files.run("createSubPath", { volumePath: path, subPath: "a/b" }, task, never);
  assert.deepEqual(await readdir(join(path, "a")), ["b"]);
  await symlink("/etc", join(path, "out"));
  await assert.rejects(
    files.run("mountSubPath", { volumePath: path, subPath: "out", target: join(root, "t") }, task, never),
    { name: "SubPathError" },
  );
  assert.ok((await files.usage(path, "pod", never)).capacityBytes > 1_000_000n);
});

test(
  "mounts inside a volume that can't be taken off in time keep nobody else's from being taken off",
  needsRoot,
  async () => {
    await using node = await VolumeNode.create({ silenceMs: 2_000 });
    const pod = podWithVolumes([{ name: "v", emptyDir: {} }]);
    await node.volumes.mount(pod, never);
    const mounts: HungMount[] = [];
    try {
      // More than are taken off at a time on the threads that all share.
      for (const name of ["a", "b", "c", "d"]) {
        const path = join(node.volumePath(uidOf(pod), "kubernetes.io/empty-dir", "v"), name);
        await mkdir(path);
        mounts.push(await HungMount.thatStays(path));
      }
      const release = node.volumes.unmount(uidOf(pod));
      const other = podWithVolumes([{ name: "m", emptyDir: { medium: "Memory" } }]);
      await node.volumes.mount(other, soon());
      await unlessAborted(node.volumes.unmount(uidOf(other)), soon());
      await unlessAborted(release, soon());
      await threadsAreFree();
      assert.deepEqual(await node.mounts(), []);
    } finally {
      for (const mount of mounts) await mount[Symbol.asyncDispose]();
    }
  },
);

test("a pod on a dead file server keeps only itself waiting", needsRoot, async () => {
  const claims = new MemoryClaims();
  const shares = await newDirectory("shares");
  const silenceMs = 500;
  const mounts: HungMount[] = [];
  // Stands in for mount(8): there is no file server here, only what is left when one has died.
  const run = async (program: string, args: readonly string[]): Promise<string> => {
    const place = args.at(-1) ?? "";
    if (program === "mount") mounts.push(await HungMount.at(place));
    else for (const mount of mounts.filter(({ path }) => path === place)) await mount[Symbol.asyncDispose]();
    return "";
  };
  await using node = await VolumeNode.create({ claims, run, silenceMs });
  try {
    const nfs = Array.from({ length: 6 }, (_, index) => ({
      name: `n${index}`,
      nfs: { server: "x", path: `/${index}` },
    }));
    const dead = podWithVolumes([
      ...nfs,
      { name: "v", emptyDir: {} },
      { name: "h", hostPath: { path: join(shares, "h"), type: "Directory" } },
    ]);
    await mkdir(join(shares, "h"));
    await node.volumes.mount(dead, never);
    const measured = node.volumes.measure(uidOf(dead), never);
    const again = node.volumes.measure(uidOf(dead), never);
    const alive = podWithVolumes([
      { name: "v", emptyDir: {} },
      { name: "m", emptyDir: { medium: "Memory" } },
    ]);
    await node.volumes.mount(alive, soon());
    assert.equal((await node.volumes.measure(uidOf(alive), soon())).length, 2);
    await node.volumes.unmount(uidOf(alive), soon());
    const subPath = { pod: dead, containerName: "main", volumeName: "n0", subPath: "a", mountIndex: 0 };
    const volumePath = node.volumePath(uidOf(dead), "kubernetes.io/nfs", "n0");
    await assert.rejects(
      unlessAborted(node.volumes.subPaths.create({ ...subPath, volumePath }), soon()),
      /does not answer/,
    );
    assert.deepEqual(
      (await unlessAborted(measured, soon())).map(({ name }) => name),
      ["v"],
    );
    assert.deepEqual(
      (await unlessAborted(again, soon())).map(({ name }) => name),
      ["v"],
    );
    await threadsAreFree();
    await node.volumes.unmount(uidOf(dead), soon());
    await until("nothing is mounted any more", async () => (await node.mounts()).length === 0);
  } finally {
    for (const mount of mounts) await mount[Symbol.asyncDispose]();
  }
});
