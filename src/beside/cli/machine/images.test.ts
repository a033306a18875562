import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { buildImage, ociArchive, tagOf } from "./oci-image.ts";
import { type TarEntry, tar } from "./tar.ts";

async function unpacked(archive: Buffer, check: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-tar-"));
  try {
    await writeFile(join(directory, "archive"), archive);
    execFileSync("tar", ["-xpf", join(directory, "archive"), "-C", directory, "--no-same-owner"]);
    await check(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

test("tar(1) unpacks files, modes, directories and links as given", async () => {
  const entries: TarEntry[] = [
    { type: "directory", path: "bin", mode: 0o700 },
    { type: "file", path: "bin/tool", content: Buffer.from("x".repeat(700)), mode: 0o755 },
    { type: "file", path: "empty", content: Buffer.alloc(0) },
    { type: "symlink", path: "bin/alias", target: "tool" },
  ];
  await unpacked(tar(entries), async (directory) => {
    assert.equal(await readFile(join(directory, "bin/alias"), "utf8"), "x".repeat(700));
    assert.equal(await readlink(join(directory, "bin/alias")), "tool");
    assert.equal((await stat(join(directory, "bin/tool"))).mode & 0o777, 0o755);
    assert.equal((await stat(join(directory, "bin"))).mode & 0o777, 0o700);
    assert.equal((await stat(join(directory, "empty"))).size, 0);
  });
});

test("owners are written, and a path that does not fit is refused", () => {
  const listing = execFileSync("tar", ["-tv", "--numeric-owner"], {
    input: tar([{ type: "directory", path: "home/user", owner: 1000 }]),
    encoding: "utf8",
  });
  assert.match(listing, /1000\/1000/);
  const path = "x".repeat(101);
  assert.throws(() => tar([{ type: "file", path, content: Buffer.alloc(0) }]), /longer than 100 bytes/);
});

test("an archive names its images, and every digest fits its content", async () => {
  const app = buildImage({
    name: "localhost/test/app:2",
    entries: [{ type: "file", path: "hello", content: Buffer.from("hello") }],
    entrypoint: ["/hello"],
    user: "1000:2000",
    env: ["A=b"],
    labels: { team: "blue" },
    volumes: ["/data"],
    exposedPorts: ["80/tcp"],
    stopSignal: "SIGINT",
    workingDir: "/srv",
  });
  const twin = { ...app, name: "localhost/test/twin:1" };
  await unpacked(ociArchive([app, twin]), async (directory) => {
    const blob = (digest: string): Promise<Buffer> => readFile(join(directory, "blobs", digest.replace(":", "/")));
    const index = JSON.parse(await readFile(join(directory, "index.json"), "utf8"));
    assert.deepEqual(
      index.manifests.map((entry: { annotations: object }) => entry.annotations),
      [
        { "io.containerd.image.name": "localhost/test/app:2", "org.opencontainers.image.ref.name": "2" },
        { "io.containerd.image.name": "localhost/test/twin:1", "org.opencontainers.image.ref.name": "1" },
      ],
    );
    const manifest = JSON.parse((await blob(index.manifests[0].digest)).toString());
    for (const { digest, size } of [index.manifests[0], manifest.config, ...manifest.layers]) {
      const content = await blob(digest);
      assert.equal(content.length, size);
      assert.equal(`sha256:${createHash("sha256").update(content).digest("hex")}`, digest);
    }
    const config = JSON.parse((await blob(manifest.config.digest)).toString());
    assert.deepEqual(config.rootfs.diff_ids, [manifest.layers[0].digest]);
    assert.deepEqual(config.config, {
      Entrypoint: ["/hello"],
      User: "1000:2000",
      WorkingDir: "/srv",
      Labels: { team: "blue" },
      StopSignal: "SIGINT",
      Volumes: { "/data": {} },
      ExposedPorts: { "80/tcp": {} },
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "A=b"],
    });
  });
});

for (const { name, tag } of [
  { name: "localhost/a/b:1", tag: "1" },
  { name: "localhost:5000/a/b", tag: "latest" },
  { name: "localhost:5000/a/b:v2", tag: "v2" },
]) {
  test(`the tag of ${name} is ${tag}`, () => assert.equal(tagOf(name), tag));
}
