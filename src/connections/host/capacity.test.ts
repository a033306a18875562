import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readFileSystem } from "./file-system.ts";
import { readHugePageSizes, readHugePages } from "./huge-pages.ts";

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

test("sizes of huge pages, rising; none on a kernel without them", async () => {
  const root = await mkdtemp(join(tmpdir(), "nodelet-hugepages-"));
  assert.deepEqual(await readHugePageSizes(root), []);
  for (const name of ["hugepages-1048576kB", "hugepages-2048kB", "hugepages-64kB", "other"]) {
    await mkdir(join(root, "sys/kernel/mm/hugepages", name), { recursive: true });
  }
  assert.deepEqual(await readHugePageSizes(root), [64n << 10n, 2n << 20n, 1n << 30n]);
  await rm(root, { recursive: true });
});

test("a file system adds up", async () => {
  const { capacityBytes, availableBytes, usedBytes, inodes, inodesFree, inodesUsed } = await readFileSystem("/");
  assert.ok(capacityBytes > 0n && availableBytes <= capacityBytes && usedBytes <= capacityBytes);
  assert.ok(inodesFree <= inodes && inodesUsed + inodesFree === inodes);
});
