import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { filesystemBytes, readHugePages } from "./capacity.ts";

test("huge pages are what is set aside, not what the kernel offers", async () => {
  const root = await mkdtemp(join(tmpdir(), "nodelet-hugepages-"));
  for (const [name, count] of [
    ["hugepages-2048kB", "512\n"],
    ["hugepages-1048576kB", "0\n"],
  ] as const) {
    await mkdir(join(root, "sys/kernel/mm/hugepages", name), { recursive: true });
    await writeFile(join(root, "sys/kernel/mm/hugepages", name, "nr_hugepages"), count);
  }
  const pages = await readHugePages(root);
  assert.deepEqual(
    [...pages].sort(),
    [
      [1024n ** 3n, 0n],
      [2n * 1024n ** 2n, 1024n ** 3n],
    ].sort(),
  );
  await rm(root, { recursive: true });
  assert.equal((await readHugePages("/nowhere")).size, 0);
});

test("this machine has a filesystem", async () => assert.ok((await filesystemBytes("/")) > 0n));
