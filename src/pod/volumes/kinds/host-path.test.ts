import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import { systemClock } from "../../../ground/base/index.ts";
import { uidOf } from "../../../ground/model/index.ts";
import { VolumeFiles } from "../file-processes/volume-files.ts";
import { hostPathKind } from "./host-path.ts";

let directory: string;
const server = createServer();
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-host-"));
  await mkdir(join(directory, "dir"));
  await writeFile(join(directory, "file"), "");
  await symlink(join(directory, "dir"), join(directory, "link-to-dir"));
  server.listen(join(directory, "socket"));
  await once(server, "listening");
});
after(async () => {
  server.close();
  await rm(directory, { recursive: true, force: true });
});

async function setUp(path: string, type?: string) {
  const volume = { name: "v", hostPath: { path, ...(type !== undefined && { type }) } };
  const pod = podWithVolumes([volume]);
  const place = { uid: uidOf(pod), specName: "v", form: "filesystem", directory: "", markers: "" } as const;
  const files = new VolumeFiles({ clock: systemClock, rootDir: "/" });
  return hostPathKind({ files }).setUp(
    { ...place, pod, name: "v", source: { type: "inline", volume } },
    { isFirst: true, progress() {}, againAt() {} },
    new AbortController().signal,
  );
}

function foresee(path: string, type: string) {
  const volume = { name: "v", hostPath: { path, type } };
  const pod = podWithVolumes([volume]);
  const place = { uid: uidOf(pod), specName: "v", form: "filesystem", directory: "", markers: "" } as const;
  const kind = hostPathKind({ files: new VolumeFiles({ clock: systemClock, rootDir: "/" }) });
  const wanted = { ...place, pod, name: "v", source: { type: "inline", volume } } as const;
  return kind.foresee?.(wanted, new AbortController().signal) ?? Promise.reject(new Error("it can't tell"));
}

const good = "good";
for (const [type, thing, expected] of [
  ["", "absent", good],
  ["", "file", good],
  ["Directory", "dir", good],
  ["Directory", "link-to-dir", good],
  ["Directory", "file", "directory"],
  ["Directory", "absent", "directory"],
  ["DirectoryOrCreate", "dir", good],
  ["DirectoryOrCreate", "file", "directory"],
  ["File", "file", good],
  ["File", "dir", "file"],
  ["File", "socket", "file"],
  ["File", "absent", "file"],
  ["FileOrCreate", "file", good],
  ["FileOrCreate", "dir", "file"],
  ["Socket", "socket", good],
  ["Socket", "file", "socket file"],
  ["Socket", "absent", "socket file"],
  ["CharDevice", "/dev/null", good],
  ["CharDevice", "file", "character device"],
  ["BlockDevice", "file", "block device"],
  ["BlockDevice", "/dev/null", "block device"],
] as const) {
  test(`type "${type}" with ${thing}: ${expected === good ? good : "refused"}`, async () => {
    const path = thing.startsWith("/") ? thing : join(directory, thing);
    if (expected === good) {
      const { volume } = await setUp(path, type);
      assert.deepEqual(volume, { type: "filesystem", hostPath: path, readOnly: false, relabel: false });
    } else {
      await assert.rejects(setUp(path, type), {
        message: `hostPath type check failed: ${path} is not a ${expected}`,
      });
    }
  });
}

test("a missing directory is made with its parents and mode 0755, a missing file with 0644", async () => {
  const before = process.umask(0o022);
  try {
    await setUp(join(directory, "new/deep"), "DirectoryOrCreate");
    await setUp(join(directory, "new/file"), "FileOrCreate");
  } finally {
    process.umask(before);
  }
  assert.equal((await stat(join(directory, "new/deep"))).mode & 0o777, 0o755);
  assert.equal((await stat(join(directory, "new/file"))).mode & 0o777, 0o644);
});

test("a file is not made without its directory", async () => {
  await assert.rejects(setUp(join(directory, "nowhere/file"), "FileOrCreate"), /ENOENT/);
});

test("an unknown type and a path with .. are refused", async () => {
  for (const type of ["Pipe", "constructor", "__proto__", "toString"]) {
    await assert.rejects(setUp("/tmp", type), { message: `${type} is an invalid volume type` });
  }
  await assert.rejects(setUp("/a/../b"), { message: "invalid HostPath `/a/../b`: must not contain '..'" });
});

test("attack: a link that leads nowhere yet does not get a file created at its end", async () => {
  const victim = join(directory, "victim");
  await symlink(victim, join(directory, "trap"));
  await assert.rejects(setUp(join(directory, "trap"), "FileOrCreate"), /is not a file/);
  await assert.rejects(stat(victim), { code: "ENOENT" });
  await assert.rejects(setUp(join(directory, "trap"), "DirectoryOrCreate"), /is not a directory|ENOENT/);
  await assert.rejects(stat(victim), { code: "ENOENT" });
});

for (const [type, thing, expected] of [
  ["", "dir", "from"],
  ["", "absent", "it is not there; what the runtime makes of that is its own"],
  ["Directory", "dir", "from"],
  ["Directory", "absent", "hostPath type check failed: PATH is not a directory"],
  ["DirectoryOrCreate", "absent", "it would be made"],
  ["DirectoryOrCreate", "file", "hostPath type check failed: PATH is not a directory"],
  ["FileOrCreate", "absent", "it would be made"],
  ["Socket", "file", "hostPath type check failed: PATH is not a socket file"],
  ["Odd", "dir", "Odd is an invalid volume type"],
] as const) {
  test(`${thing} as ${type || "anything"}, foreseen`, async () => {
    const path = join(directory, thing);
    const foreseen = await foresee(path, type).catch((error: Error) => ({ from: "", note: error.message }));
    assert.equal(foreseen.note ?? (foreseen.from === path ? "from" : foreseen.from), expected.replace("PATH", path));
    await assert.rejects(stat(join(directory, "absent")), "nothing is made");
  });
}
