import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  HeldDirectory,
  isMountPoint,
  loadSyscalls,
  MountInTheWayError,
  mountFlags,
  readMounts,
  removeTree,
  unmountFlags,
} from "./index.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-remove-"));
});
after(() => rm(directory, { recursive: true, force: true }));

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

test("removes files, links, and directories of any depth", async () => {
  const root = join(directory, "tree");
  await mkdir(join(root, "a/b"), { recursive: true });
  for (let index = 0; index < 50; index++) await writeFile(join(root, `a/file-${index}`), "");
  await writeFile(join(directory, "outside"), "stays");
  await symlink(join(directory, "outside"), join(root, "link"));
  await symlink(directory, join(root, "a/link-to-directory"));
  await removeTree(root);
  assert.equal(await exists(root), false);
  assert.equal(await readFile(join(directory, "outside"), "utf8"), "stays");
  await removeTree(root);
});

test("a tree deeper than open files and paths allow", async () => {
  const root = join(directory, "deep");
  await mkdir(root);
  let held = await HeldDirectory.open(root);
  for (let depth = 0; depth < 1_500; depth++) {
    await mkdir(held.path("directory"));
    const next = await held.enter("directory");
    held.close();
    held = next;
  }
  held.close();
  await removeTree(root);
  assert.equal(await exists(root), false);
});

test("directories from far below are not remembered one by one", needsRoot, async () => {
  const base = await mkdtemp(join(directory, "wide-"));
  const calls = await loadSyscalls();
  for (let index = 0; index < 5; index++) {
    const mounted = join(base, "root", "d/".repeat(99), String(index), "mounted");
    await mkdir(mounted, { recursive: true });
    calls.mount("tmpfs", mounted, "tmpfs", 0, "size=64k");
  }
  try {
    // What can't be removed shows where it was put meanwhile.
    await assert.rejects(removeTree(join(base, "root")), MountInTheWayError);
    assert.equal((await readdir(base)).length, 1);
  } finally {
    for (const { mountPoint } of await readMounts()) {
      if (mountPoint.startsWith(`${base}/`)) await calls.unmount(mountPoint, unmountFlags.detach);
    }
  }
});

test("a file and a link by themselves", async () => {
  await writeFile(join(directory, "file"), "");
  await symlink("nowhere", join(directory, "dangling"));
  await removeTree(join(directory, "file"));
  await removeTree(join(directory, "dangling"));
  await removeTree(join(directory, "absent/below"));
  assert.equal(await exists(join(directory, "file")), false);
});

for (const kind of ["tmpfs", "bind of the same file system"] as const) {
  test(`nothing below a mount is removed: ${kind}`, needsRoot, async () => {
    const calls = await loadSyscalls();
    const [root, source] = [join(directory, `over-${kind}`), join(directory, `source-${kind}`)];
    const point = join(root, "a/mounted");
    await mkdir(point, { recursive: true });
    await mkdir(source);
    if (kind === "tmpfs") calls.mount("tmpfs", point, "tmpfs", 0, "size=1m");
    else calls.mount(source, point, "", mountFlags.bind);
    try {
      await writeFile(join(point, "precious"), "1");
      await assert.rejects(removeTree(root), (error) => {
        assert.ok(error instanceof MountInTheWayError);
        assert.equal(error.path, point);
        assert.equal(error.message, `cannot delete directory ${point}: it is a mount point`);
        return true;
      });
      assert.equal(await readFile(join(point, "precious"), "utf8"), "1");
      await assert.rejects(removeTree(point), MountInTheWayError);
      assert.equal(await isMountPoint(point), true);
      assert.equal(await isMountPoint(root), false);
    } finally {
      await calls.unmount(point, unmountFlags.detach);
    }
    await removeTree(root);
  });
}

test("a directory exchanged for a link while it is being removed leads nowhere", async () => {
  const outside = join(directory, "victim");
  await mkdir(outside);
  for (let index = 0; index < 20; index++) await writeFile(join(outside, `f${index}`), "");
  for (let turn = 0; turn < 20; turn++) {
    const root = join(directory, `raced-${turn}`);
    await mkdir(join(root, "d"), { recursive: true });
    for (let index = 0; index < 20; index++) await writeFile(join(root, "d", `f${index}`), "");
    const attack = (async () => {
      for (let step = 0; step < turn; step++) await stat(root).catch(() => {});
      await rename(join(root, "d"), join(directory, `moved-${turn}`)).catch(() => {});
      await symlink(outside, join(root, "d")).catch(() => {});
    })();
    await removeTree(root).catch(() => {});
    await attack;
  }
  for (let index = 0; index < 20; index++) assert.equal(await exists(join(outside, `f${index}`)), true);
});

test("names that are paths are refused", async () => {
  using held = await HeldDirectory.open(directory);
  for (const name of ["", ".", "..", "a/b", "/etc"]) assert.throws(() => held.path(name), /not the name/);
});
