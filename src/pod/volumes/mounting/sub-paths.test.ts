import assert from "node:assert/strict";
import { once } from "node:events";
import { closeSync } from "node:fs";
import {
  chmod,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import { isMountPoint, loadSyscalls, mountFlags, SyscallError } from "../../../connections/host/index.ts";
import { uidOf } from "../../../ground/model/index.ts";
import { cleanSubPaths } from "./sub-path-cleanup.ts";
import { createSubPath, mountSubPath, readVolumeFile, SubPathError } from "./sub-paths.ts";
import { mountsBelow, mountWorkHere, unmountAllBelow } from "./unmount.ts";

let base: string;
let volume: string;
let outside: string;
let turns = 0;
before(async () => {
  base = await mkdtemp(join(tmpdir(), "nodelet-sub-"));
});
beforeEach(async () => {
  const turn = join(base, String(++turns));
  volume = join(turn, "volume");
  outside = join(turn, "outside");
  await mkdir(volume, { recursive: true, mode: 0o755 });
  await mkdir(outside);
  await writeFile(join(outside, "secret"), "of the node");
});
after(async () => {
  await unmountAllBelow(base, mountWorkHere);
  await rm(base, { recursive: true, force: true });
});

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const target = (): string => join(base, String(turns), "volume-subpaths/v/main/0");

test(
  "missing directories are made with the volume's own mode, sticky and set-group bits included",
  needsRoot,
  async () => {
    await chmod(volume, 0o3777);
    const umask = process.umask(0o077);
    try {
      await createSubPath(volume, "a/b//./c");
    } finally {
      process.umask(umask);
    }
    for (const path of ["a", "a/b", "a/b/c"])
      assert.equal((await stat(join(volume, path))).mode & 0o7777, 0o3777, path);
    await createSubPath(volume, "a/b/c");
  },
);

test(
  "a directory, a file, a socket and a device can be mounted; the parent's other content is not shown",
  needsRoot,
  async () => {
    await mkdir(join(volume, "dir"));
    await writeFile(join(volume, "dir/inside"), "1");
    await writeFile(join(volume, "file"), "2");
    const server = createServer().listen(join(volume, "socket"));
    await once(server, "listening");
    await mountSubPath(volume, "dir", target());
    assert.equal(await readFile(join(target(), "inside"), "utf8"), "1");
    for (const [index, name] of ["file", "socket"].entries()) {
      const at = join(base, String(turns), `volume-subpaths/v/main/${index + 1}`);
      await mountSubPath(volume, name, at);
      assert.equal((await stat(at)).ino, (await stat(join(volume, name))).ino);
    }
    await mountSubPath("/dev", "null", join(base, String(turns), "volume-subpaths/v/main/3"));
    server.close();
  },
);

test("mounted again for a new container: the same file is kept, another one takes its place", needsRoot, async () => {
  await writeFile(join(volume, "file"), "old");
  await mountSubPath(volume, "file", target());
  await mountSubPath(volume, "file", target());
  assert.equal((await mountsBelow(target())).length, 1);
  await rename(join(volume, "file"), join(volume, "old"));
  await mkdir(join(volume, "file"));
  await writeFile(join(volume, "file/new"), "");
  await mountSubPath(volume, "file", target());
  assert.equal((await stat(join(target(), "new"))).isFile(), true);
});

test("links that stay inside the volume are followed", needsRoot, async () => {
  await mkdir(join(volume, "real"));
  await writeFile(join(volume, "real/file"), "1");
  await symlink("real", join(volume, "relative"));
  await symlink(join(volume, "real"), join(volume, "absolute"));
  for (const [index, name] of ["relative", "absolute"].entries()) {
    const at = join(base, String(turns), `volume-subpaths/v/main/${index}`);
    await createSubPath(volume, `${name}/file`);
    await mountSubPath(volume, `${name}/file`, at);
    assert.equal(await readFile(at, "utf8"), "1");
  }
  await createSubPath(volume, "relative/new/deep");
  assert.equal((await stat(join(volume, "real/new/deep"))).isDirectory(), true);
});

for (const { name, make, path } of [
  { name: "link to /", make: () => symlink("/", join(volume, "x")), path: "x" },
  { name: "link to / and on from there", make: () => symlink("/", join(volume, "x")), path: "x/etc" },
  { name: "link to ..", make: () => symlink("..", join(volume, "x")), path: "x" },
  { name: "link to a file outside", make: () => symlink("../outside/secret", join(volume, "x")), path: "x" },
  {
    name: "link in a parent",
    make: async () => {
      await mkdir(join(volume, "a"));
      await symlink(outside, join(volume, "a/b"));
    },
    path: "a/b/secret",
  },
  {
    name: "link to a link",
    make: async () => {
      await symlink("y", join(volume, "x"));
      await symlink(outside, join(volume, "y"));
    },
    path: "x/secret",
  },
  { name: "link into the process list", make: () => symlink("/proc/self/root", join(volume, "x")), path: "x/etc" },
  {
    name: "neighbour with the same beginning",
    make: async () => {
      await mkdir(`${volume}-evil`);
      await symlink(`${volume}-evil`, join(volume, "x"));
    },
    path: "x",
  },
]) {
  test(`attack: ${name}`, needsRoot, async () => {
    await make();
    await assert.rejects(mountSubPath(volume, path, target()), SubPathError);
    await assert.rejects(createSubPath(volume, `${path}/new/dir`));
    await assert.rejects(readVolumeFile(volume, path));
    await assert.rejects(stat(join(outside, "new")), { code: "ENOENT" });
    assert.equal(await isMountPoint(target()), false);
  });
}

test("the root of the node is a volume like others", needsRoot, async () => {
  const part = join(volume, "part/new").slice(1);
  await createSubPath("/", part);
  await writeFile(`/${part}/file`, "1");
  await mountSubPath("/", part, target());
  assert.equal(await readFile(join(target(), "file"), "utf8"), "1");
  assert.equal(await readVolumeFile("/", `${part}/file`), "1");
});

test("attack: a link that leads nowhere yet does not get a directory made at its end", needsRoot, async () => {
  await symlink(join(outside, "planted"), join(volume, "x"));
  await assert.rejects(createSubPath(volume, "x/y"), SubPathError);
  await assert.rejects(createSubPath(volume, "x"), SubPathError);
  await assert.rejects(stat(join(outside, "planted")), { code: "ENOENT" });
});

for (const path of ["/etc", "../outside", "a/../../outside", ".."]) {
  test(`attack: path ${path}`, async () => {
    await assert.rejects(createSubPath(volume, path), SubPathError);
    await assert.rejects(mountSubPath(volume, path, target()), SubPathError);
  });
}

test("attack: the kernel refuses a link that appears after the path was resolved", needsRoot, async () => {
  const calls = await loadSyscalls();
  await mkdir(join(volume, "a/b"), { recursive: true });
  const directory = await open(volume, "r");
  try {
    closeSync(calls.openBeneath(directory.fd, "a/b"));
    await rename(join(volume, "a"), join(volume, "moved"));
    await symlink(outside, join(volume, "a"));
    const refused = (path: string, code: string) =>
      assert.throws(
        () => calls.openBeneath(directory.fd, path),
        (error) => error instanceof SyscallError && error.code === code,
      );
    refused("a/secret", "ELOOP");
    refused("a", "ELOOP");
    refused("../outside", "EXDEV");
    refused("/etc", "EXDEV");
    refused("moved/../../outside", "EXDEV");
  } finally {
    await directory.close();
  }
});

test("attack: a directory is exchanged for a link again and again while it is being mounted", needsRoot, async () => {
  await mkdir(join(volume, "x"));
  await writeFile(join(volume, "x/secret"), "of the pod");
  await symlink(outside, join(volume, "y"));
  let swapping = true;
  let swaps = 0;
  const swapper = (async () => {
    while (swapping) {
      await rename(join(volume, "x"), join(volume, "z"));
      await rename(join(volume, "y"), join(volume, "x"));
      await rename(join(volume, "z"), join(volume, "y"));
      swaps++;
      // Out of step with the mounting: else each turn might meet the same state.
      for (let rest = Math.random() * 4; rest > 1; rest--) await setImmediate();
    }
  })();
  let mounted = 0;
  let refused = 0;
  for (let turn = 0; turn < 300 || (turn < 10_000 && (mounted === 0 || refused === 0)); turn++) {
    try {
      await mountSubPath(volume, "x", target());
      mounted++;
    } catch {
      refused++;
    }
    if (await isMountPoint(target())) {
      assert.equal(await readFile(join(target(), "secret"), "utf8"), "of the pod");
      await cleanSubPaths(join(base, String(turns), "volume-subpaths/v"), mountWorkHere);
    }
  }
  swapping = false;
  await swapper;
  assert.ok(swaps > 10 && refused > 0 && mounted > 0, `${swaps} swaps, ${mounted} mounted, ${refused} refused`);
});

test("attack: a directory on the way is exchanged for a link while directories are being made", needsRoot, async () => {
  let swapping = true;
  const swapper = (async () => {
    while (swapping) {
      await rename(join(volume, "a"), join(volume, "b")).catch(() => {});
      await symlink(outside, join(volume, "a")).catch(() => {});
      await unlink(join(volume, "a")).catch(() => {});
      await rename(join(volume, "b"), join(volume, "a")).catch(() => {});
    }
  })();
  for (let turn = 0; turn < 200; turn++) await createSubPath(volume, `a/d${turn}/e`).catch(() => {});
  swapping = false;
  await swapper;
  assert.deepEqual(await readdir(outside), ["secret"]);
});

test("files are read for the pod without leaving its volume", async () => {
  await mkdir(join(volume, "d"));
  await writeFile(join(volume, "d/env"), "A=1");
  assert.equal(await readVolumeFile(volume, "d/env"), "A=1");
  await assert.rejects(readVolumeFile(volume, "absent"), { code: "ENOENT" });
});

test("clean-up takes mounts and empty places, and refuses what holds data", needsRoot, async () => {
  await mkdir(join(volume, "dir"));
  await writeFile(join(volume, "dir/data"), "1");
  await writeFile(join(volume, "file"), "2");
  const root = join(base, String(turns), "volume-subpaths/v");
  await mountSubPath(volume, "dir", join(root, "main/0"));
  await mountSubPath(volume, "file", join(root, "main/1"));
  await mountSubPath(volume, "file", join(root, "other/0"));
  await cleanSubPaths(root, mountWorkHere);
  await assert.rejects(stat(root), { code: "ENOENT" });
  assert.equal(await readFile(join(volume, "dir/data"), "utf8"), "1");
  assert.equal(await readFile(join(volume, "file"), "utf8"), "2");

  await mkdir(join(root, "main"), { recursive: true });
  await writeFile(join(root, "main/0"), "precious");
  await assert.rejects(cleanSubPaths(root, mountWorkHere), /holds 8 bytes; it was not removed/);
  await rm(root, { recursive: true });
  await mkdir(join(root, "main/0/full"), { recursive: true });
  await assert.rejects(cleanSubPaths(root, mountWorkHere), { code: "ENOTEMPTY" });
});

test("what the host mounts below a part of a host path survives the end of the pod", needsRoot, async () => {
  await using node = await VolumeNode.create();
  const calls = await loadSyscalls();
  const host = join(node.root, "host");
  await mkdir(join(host, "part/disk"), { recursive: true });
  calls.mount(host, host, "", mountFlags.bind);
  calls.mount("none", host, "", mountFlags.shared);
  const pod = podWithVolumes([{ name: "v", hostPath: { path: host } }]);
  await node.volumes.mount(pod, new AbortController().signal);
  const request = { pod, containerName: "main", volumeName: "v", volumePath: host, subPath: "part", mountIndex: 0 };
  const at = await node.volumes.subPaths.prepare(request);
  assert.equal(at, join(node.podsDir, uidOf(pod), "volume-subpaths/v/main/0"));
  // Mounted by the host while the pod runs; it shows below the part as well, because both are one.
  calls.mount("tmpfs", join(host, "part/disk"), "tmpfs", 0, "size=1m");
  await writeFile(join(host, "part/disk/data"), "1");
  assert.equal(await readFile(join(at, "disk/data"), "utf8"), "1");
  await node.volumes.unmount(uidOf(pod));
  assert.equal(await readFile(join(host, "part/disk/data"), "utf8"), "1");
  await assert.rejects(stat(join(node.podsDir, uidOf(pod), "volume-subpaths")), { code: "ENOENT" });
});

test(
  "what is mounted inside is not asked anything when it is taken off, unless it holds more",
  needsRoot,
  async (t) => {
    const calls = await loadSyscalls();
    const [outer, inner, beside] = [join(volume, "outer"), join(volume, "outer/inner"), join(volume, "beside")];
    for (const place of [outer, inner, beside]) {
      await mkdir(place);
      calls.mount("tmpfs", place, "tmpfs", 0, "size=1m");
    }
    const asked = t.mock.method(calls, "mount");
    await unmountAllBelow(volume, mountWorkHere);
    assert.deepEqual(
      asked.mock.calls.map((call) => call.arguments[1]),
      [outer],
    );
    assert.deepEqual(await mountsBelow(volume), []);
  },
);
