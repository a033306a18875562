import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { LoopDisk } from "../../../../test/support/loop-disk.ts";
import { until } from "../../../../test/support/until.ts";
import { type FileSystemUsage, readFileSystem } from "../../../connections/host/index.ts";
import { never, silentLogger, systemClock } from "../../../ground/base/index.ts";
import { DiskSignals } from "./disk-signals.ts";

/** What a runtime says of its disks; containerd says nothing of those of containers, CRI-O does. */
function runtimeSaying(images: string, containers?: string) {
  const at = (mountpoint: string) => ({
    timestamp: 0n,
    fsId: { mountpoint },
    usedBytes: undefined,
    inodesUsed: undefined,
  });
  return {
    imageFsInfo: async () => ({
      imageFilesystems: [at(images)],
      containerFilesystems: containers === undefined ? [] : [at(containers)],
    }),
  };
}

const usage: FileSystemUsage = {
  capacityBytes: 100n,
  availableBytes: 50n,
  usedBytes: 50n,
  inodes: 10n,
  inodesFree: 5n,
  inodesUsed: 5n,
};

test("a disk that does not answer is waited for once; afterwards it holds up nobody, until it answers", async () => {
  const clock = new FakeClock();
  let hanging: ((usage: FileSystemUsage) => void) | undefined;
  let isHung = false;
  let asked = 0;
  const disks = new DiskSignals({
    images: runtimeSaying("/images"),
    sources: {
      device: async () => 1n,
      fileSystem: async () => {
        asked++;
        if (!isHung) return usage;
        return await new Promise((resolve) => {
          hanging = resolve;
        });
      },
    },
    rootDir: "/root",
    clock,
    log: silentLogger,
  });
  /** How long a read takes. */
  const readMs = async (): Promise<number> => {
    const began = clock.monotonic();
    let endedAt: number | undefined;
    void disks.read(never).then(() => {
      endedAt = clock.monotonic();
    });
    for (let waited = 0; endedAt === undefined && waited < 100; waited++) await clock.advance(50);
    return (endedAt ?? Number.POSITIVE_INFINITY) - began;
  };
  const seenAt = clock.monotonic();
  assert.equal(await readMs(), 0);
  isHung = true;
  assert.ok((await readMs()) >= 500);
  for (let look = 0; look < 5; look++) assert.equal(await readMs(), 0);
  assert.equal(asked, 2, "and is not asked again meanwhile");
  const seen = (await disks.read(never))?.nodefs;
  assert.deepEqual(seen, { ...usage, readAt: seenAt }, "what was last seen counts for a while");
  await clock.advance(60_000);
  assert.equal(await disks.read(never), undefined, "but not for ever");
  isHung = false;
  hanging?.(usage);
  await clock.advance(1);
  assert.deepEqual((await disks.read(never))?.nodefs, { ...usage, readAt: clock.monotonic() });
  assert.equal(asked, 3);
});

test("a disk that does not answer hides no other disk, and is spoken of once", async () => {
  const clock = new FakeClock();
  const said: string[] = [];
  let free = 50n;
  const disks = new DiskSignals({
    images: runtimeSaying("/images"),
    sources: {
      device: async (path) => (path === "/images" ? 2n : 1n),
      fileSystem: async (path) =>
        path === "/images" ? await new Promise<never>(() => {}) : { ...usage, availableBytes: free },
    },
    rootDir: "/root",
    clock,
    log: { ...silentLogger, warn: (message, fields) => said.push(`${message} ${fields?.["of"]}`) },
  });
  const read = async () => {
    const reading = disks.read(never);
    await clock.advance(500);
    return await reading;
  };
  assert.equal((await read())?.nodefs?.availableBytes, 50n);
  for (free = 49n; free > 0n; free--) {
    const { layout, nodefs, imagefs } = (await read()) ?? assert.fail("no figures");
    assert.deepEqual([layout, nodefs?.availableBytes, imagefs], ["images apart", free, undefined]);
  }
  assert.deepEqual(said, ["Could not read how full the node's disks are /images"]);
});

test("a disk that can't be read at all is spoken of once, and when it can be read again", async () => {
  const clock = new FakeClock();
  const said: string[] = [];
  let problem: Error | undefined = new Error("input/output error");
  const disks = new DiskSignals({
    images: runtimeSaying("/images"),
    sources: {
      device: async () => 1n,
      fileSystem: async () => {
        if (problem !== undefined) throw problem;
        return usage;
      },
    },
    rootDir: "/root",
    clock,
    log: {
      ...silentLogger,
      warn: (_message, fields) => said.push(String(fields?.["err"])),
      info: (message) => said.push(message),
    },
  });
  for (let look = 0; look < 100; look++) assert.equal(await disks.read(never), undefined);
  problem = undefined;
  assert.deepEqual((await disks.read(never))?.nodefs, { ...usage, readAt: clock.monotonic() });
  assert.deepEqual(said, ["input/output error", "How full the node's disks are is known again"]);
});

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };

test("real disks: which hold what is told by their devices, and each has its own figures", needsRoot, async () => {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-disks-"));
  try {
    await using node = LoopDisk.mountOn(join(directory, "node"), { megabytes: 16 });
    await using images = LoopDisk.mountOn(join(directory, "images"), { megabytes: 24 });
    await using containers = LoopDisk.mountOn(join(directory, "containers"), { megabytes: 32 });
    /** Nobody is waited for; on a machine that is busy, the figures are there with a later look. */
    const read = async (imagesAt: string, containersAt?: string) => {
      const signals = new DiskSignals({
        images: runtimeSaying(imagesAt, containersAt),
        sources: {
          fileSystem: readFileSystem,
          device: async (path) => (await stat(path, { bigint: true })).dev,
        },
        rootDir: node.path,
        clock: systemClock,
        log: silentLogger,
      });
      let reading = await signals.read(never);
      await until("all three are read", async () => {
        reading = await signals.read(never);
        return reading?.nodefs !== undefined && reading.imagefs !== undefined && reading.containerfs !== undefined;
      });
      return reading ?? assert.fail("no figures");
    };
    const megabytes = (place: FileSystemUsage | undefined): number =>
      Math.round(Number(place?.capacityBytes) / 2 ** 20);
    const shown = async (...places: Parameters<typeof read>): Promise<string> => {
      const { layout, nodefs, imagefs, containerfs } = await read(...places);
      // File systems keep a part for themselves.
      const sizes = [nodefs, imagefs, containerfs].map((place) =>
        [16, 24, 32].findLast((size) => megabytes(place) > size - 8),
      );
      return `${layout}: ${sizes.join(" ")}`;
    };
    assert.equal(await shown(node.path), "one disk for all: 16 16 16");
    assert.equal(await shown(images.path), "images apart: 16 24 24");
    // Images on a disk of their own, what containers write beside the node's files.
    assert.equal(await shown(images.path, node.path), "containers apart: 16 24 16");
    assert.equal(await shown(images.path, containers.path), "containers apart: 16 24 32");
    const before = await read(images.path, containers.path);
    await writeFile(join(images.path, "fill"), Buffer.alloc(4 * 2 ** 20, 1));
    const after = await read(images.path, containers.path);
    assert.ok(Number(before.imagefs?.availableBytes) - Number(after.imagefs?.availableBytes) >= 4 * 2 ** 20);
    assert.equal(before.containerfs?.availableBytes, after.containerfs?.availableBytes);
    assert.equal(before.nodefs?.availableBytes, after.nodefs?.availableBytes);
  } finally {
    await rm(directory, { recursive: true });
  }
});
