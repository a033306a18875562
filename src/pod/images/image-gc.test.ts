import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { FakeImageService } from "../../../test/support/fake-image-service.ts";
import { CriError } from "../../connections/cri/index.ts";
import { silentLogger } from "../../ground/base/index.ts";
import { type ImageAge, ImageAgeFile, type ImageAgeStore } from "./image-ages.ts";
import { readImageFs } from "./image-fs.ts";
import { ImageGc, type ImageGcPorts, type ImageGcSettings } from "./image-gc.ts";
import { ImageList, nodeStatusImages } from "./node-images.ts";
import { sandboxImageOf } from "./sandbox-image.ts";

const minute = 60_000;
const { signal } = new AbortController();

class MemoryAges implements ImageAgeStore {
  saved: ReadonlyMap<string, ImageAge> = new Map();

  async load(): Promise<ReadonlyMap<string, ImageAge>> {
    return this.saved;
  }

  async save(ages: ReadonlyMap<string, ImageAge>): Promise<void> {
    this.saved = new Map(ages);
  }
}

/** A disk of 1000 bytes on which only images lie. */
class Node {
  readonly clock = new FakeClock();
  readonly service = new FakeImageService();
  readonly inUse = new Set<string>();
  readonly kept: string[] = [];
  readonly events: string[] = [];
  readonly removals: string[] = [];
  readonly left: string[][] = [];
  readonly ages: ImageAgeStore;
  capacity = 1_000n;
  readonly gc: ImageGc;

  constructor(settings: Partial<ImageGcSettings> = {}, ports: Partial<ImageGcPorts> = {}) {
    this.ages = ports.ages ?? new MemoryAges();
    this.gc = new ImageGc(
      { highThresholdPercent: 85, lowThresholdPercent: 80, minimumAgeMs: 2 * minute, maximumAgeMs: 0, ...settings },
      {
        images: this.service,
        readFs: async () => ({ capacityBytes: this.capacity, availableBytes: this.capacity - this.#used() }),
        imagesInUse: async () => new Map([...this.inUse].map((name) => [name, "a container"])),
        keptImages: () => this.kept,
        clock: this.clock,
        log: silentLogger,
        recordNodeEvent: ({ type, reason, message }) => this.events.push(`${type} ${reason} ${message}`),
        onRemoved: ({ reason, sizeBytes }) => this.removals.push(`${reason} ${sizeBytes}`),
        onCollected: async (ids) => {
          this.left.push([...ids].sort());
        },
        ...ports,
        ages: this.ages,
      },
    );
  }

  add(id: string, size: bigint, options: { pinned?: boolean } = {}): void {
    this.service.preload(`reg.io/${id}:1`, { id, size, ...options });
  }

  async collect(afterMs = 5 * minute): Promise<readonly string[]> {
    await this.clock.advance(afterMs);
    await this.gc.collect(signal);
    return this.service.removed.splice(0);
  }

  #used(): bigint {
    return [...this.service.present.values()].reduce((sum, { size }) => sum + size, 0n);
  }
}

test("below the high threshold nothing goes, at it the longest unused go until the low one is reached", async () => {
  const node = new Node();
  node.add("first", 300n);
  assert.deepEqual(await node.collect(), []);
  node.add("second", 300n);
  assert.deepEqual(await node.collect(), []);
  node.add("third", 240n);
  assert.deepEqual(await node.collect(), [], "84.0 %");
  // Free space is rounded down to whole percents: 84.1 % counts as 85.
  node.add("tiny", 1n);
  assert.deepEqual(await node.collect(), ["first"]);
  assert.deepEqual(node.removals, ["space 300"]);
  assert.deepEqual(node.left.at(-1), ["second", "third", "tiny"]);
});

test("order: never used before used, then by last use, then by first sight", async () => {
  const node = new Node({ highThresholdPercent: 80, lowThresholdPercent: 1 });
  node.capacity = 10_000n;
  for (const id of ["used-early", "used-late", "never-1"]) {
    node.add(id, 10n);
    await node.collect();
  }
  node.add("never-2", 10n);
  for (const id of ["used-early", "used-late"]) {
    node.inUse.add(id);
    await node.collect();
    node.inUse.clear();
  }
  node.capacity = 40n;
  assert.deepEqual(await node.collect(), ["never-1", "never-2", "used-early", "used-late"]);
});

test("in use by id, tag or digest, pinned, and the sandbox image stay", async () => {
  const node = new Node();
  for (const id of ["by-id", "by-tag", "by-digest", "idle"]) node.add(id, 100n);
  node.add("pinned", 300n, { pinned: true });
  node.service.preload("registry.k8s.io/pause:3.6", { id: "pause", size: 300n });
  node.service.preload("", { id: "by-digest", size: 100n, repoTags: [], repoDigests: ["reg.io/d@sha256:1"] });
  for (const name of ["by-id", "reg.io/by-tag:1", "reg.io/d@sha256:1"]) node.inUse.add(name);
  node.kept.push("registry.k8s.io/pause:3.6");
  await node.collect();
  assert.deepEqual(await node.collect(), ["idle"]);
  assert.deepEqual([...node.service.present.keys()].sort(), ["by-digest", "by-id", "by-tag", "pause", "pinned"]);
});

test("an image first seen less than the minimum age ago stays; wanted by a container to be, too", async () => {
  const node = new Node();
  node.add("new", 900n);
  assert.deepEqual(await node.collect(), []);
  await node.clock.advance(2 * minute - 1);
  assert.deepEqual(await node.collect(0), []);
  await node.clock.advance(1);
  node.gc.noteWanted("new");
  assert.deepEqual(await node.collect(0), []);
  assert.deepEqual(await node.collect(2 * minute + 1), ["new"], "nobody made the container");
});

test("shortfall: the event at once, ImageGCFailed from the second failure in a row, forgotten after a success", async () => {
  const node = new Node();
  node.add("used", 900n);
  node.add("idle", 20n);
  node.inUse.add("used");
  const shortfall = (attempted: number, found: number): string =>
    `Failed to garbage collect required amount of images. Attempted to free ${attempted} bytes, but only found ${found} bytes eligible to free.`;
  await node.collect();
  assert.deepEqual(node.events.splice(0), [`Warning FreeDiskSpaceFailed ${shortfall(120, 0)}`]);
  await node.collect();
  assert.deepEqual(node.events.splice(0), [
    `Warning FreeDiskSpaceFailed ${shortfall(120, 20)}`,
    `Warning ImageGCFailed ${shortfall(120, 20)}`,
  ]);
  node.capacity = 10_000n;
  await node.collect();
  node.capacity = 1_000n;
  await node.collect();
  assert.deepEqual(node.events, [`Warning FreeDiskSpaceFailed ${shortfall(100, 0)}`]);
});

test("a disk of no size", async () => {
  const node = new Node();
  node.capacity = 0n;
  await node.collect();
  await node.collect();
  assert.deepEqual(node.events, [
    "Warning InvalidDiskCapacity invalid capacity 0 on image filesystem",
    "Warning InvalidDiskCapacity invalid capacity 0 on image filesystem",
    "Warning ImageGCFailed invalid capacity 0 on image filesystem",
  ]);
});

test("an image the runtime will not remove does not keep the others", async () => {
  const node = new Node();
  node.add("stuck", 450n);
  node.add("idle", 450n);
  node.capacity = 10_000n;
  await node.collect();
  node.capacity = 1_000n;
  const { removeImage } = node.service;
  Object.assign(node.service, {
    removeImage: async (...call: Parameters<typeof removeImage>) => {
      if (call[0].image?.image === "stuck") throw new CriError("Unknown", "removeImage", "device busy");
      return removeImage(...call);
    },
  });
  assert.deepEqual(await node.collect(), ["idle"]);
  assert.deepEqual(node.events, []);
});

test("a runtime that does not answer is a failure like any other", async () => {
  const node = new Node();
  node.service.broken.list = new CriError("Unavailable", "listImages", "gone");
  await node.collect();
  await node.collect();
  assert.deepEqual(node.events, ["Warning ImageGCFailed gone"]);
});

test("maximum age: unused for longer go whatever the space, counted from first sight when never used", async () => {
  const node = new Node({ maximumAgeMs: 60 * minute });
  node.capacity = 1_000_000n;
  node.add("never", 1n);
  node.add("used", 1n);
  node.inUse.add("used");
  await node.collect(0);
  await node.collect(30 * minute);
  node.inUse.clear();
  assert.deepEqual(await node.collect(30 * minute), []);
  assert.deepEqual(await node.collect(1), ["never"]);
  assert.deepEqual(await node.collect(30 * minute - 1), []);
  assert.deepEqual(await node.collect(1), ["used"]);
  assert.deepEqual(node.removals, ["age 1", "age 1"]);
});

test("switched off: ages are kept up to date, nothing is removed", async () => {
  const node = new Node({ highThresholdPercent: 100 });
  node.add("idle", 1_000n);
  assert.deepEqual(await node.collect(0), []);
  assert.deepEqual(await node.collect(), []);
  assert.equal(await node.gc.deleteUnused(signal), 1_000n, "eviction may still ask");
});

test("eviction: everything unused and old enough goes, without thresholds and events", async () => {
  const node = new Node();
  node.capacity = 1_000_000n;
  for (const id of ["a", "b", "used"]) node.add(id, 10n);
  node.inUse.add("used");
  await node.collect();
  await node.clock.advance(3 * minute);
  node.add("new", 10n);
  assert.equal(await node.gc.deleteUnused(signal), 20n);
  assert.deepEqual(node.service.removed.sort(), ["a", "b"]);
  assert.deepEqual(node.events, []);
  assert.deepEqual(node.left.at(-1), ["new", "used"]);
});

test("the next round is due five minutes after the last, the first at once", async () => {
  const node = new Node();
  assert.equal(node.gc.nextCheckAt, node.clock.monotonic());
  await node.gc.collect(signal);
  assert.equal(node.gc.nextCheckAt, node.clock.monotonic() + 5 * minute);
});

test("ages survive a restart of the agent; the time it was away does not make images old", async () => {
  const directory = await mkdtemp(join(tmpdir(), "image-ages-"));
  try {
    const file = join(directory, "nodelet", "images.json");
    const settings = { maximumAgeMs: 60 * minute };
    const before = new Node(settings, { ages: new ImageAgeFile(file) });
    for (const id of ["used", "idle"]) before.add(id, 1n);
    before.inUse.add("used");
    await before.collect(0);
    await before.collect(10 * minute);

    const after = new Node(settings, { ages: new ImageAgeFile(file) });
    for (const id of ["used", "idle", "late"]) after.add(id, 1n);
    await after.clock.advance(10 * minute + 24 * 60 * minute);
    assert.deepEqual(await after.collect(0), ["idle"], "first seen a day ago, never used");
    assert.deepEqual(await after.collect(60 * minute), []);
    assert.deepEqual((await after.collect(1)).toSorted(), ["late", "used"]);

    await writeFile(file, "{ broken");
    const anew = new Node(settings, { ages: new ImageAgeFile(file) });
    anew.add("idle", 1n);
    assert.deepEqual(await anew.collect(0), []);
    assert.match(await readFile(file, "utf8"), /"idle"/);
    assert.deepEqual(await readdir(join(directory, "nodelet")), ["images.json"]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("image file system: the runtime's usage with the kernel's totals", async () => {
  const service = new FakeImageService();
  await assert.rejects(readImageFs(service, signal), /^Error: imageFs information is unavailable$/);
  service.mountpoints.push(tmpdir());
  const fs = await readImageFs(service, signal);
  assert.equal(fs.mountpoint, tmpdir());
  assert.equal(fs.usedBytes, 4_096n);
  assert.equal(fs.inodesUsed, 7n);
  assert.ok(fs.capacityBytes > 0n && fs.availableBytes <= fs.capacityBytes && fs.inodesFree <= fs.inodes);
});

test("images for the node status: largest first, ties by id descending, at most five names, cut as configured", () => {
  const service = new FakeImageService();
  service.preload("a:1", { id: "a", size: 5n });
  service.preload("b:1", { id: "b", size: 7n });
  service.preload("c:1", {
    id: "c",
    size: 5n,
    repoDigests: ["c@1", "c@2"],
    repoTags: ["c:1", "c:2", "c:3", "c:4"],
  });
  const images = [...service.present.values()];
  assert.deepEqual(nodeStatusImages(images, -1), [
    { names: ["b:1"], sizeBytes: 7 },
    { names: ["c@1", "c@2", "c:1", "c:2", "c:3"], sizeBytes: 5 },
    { names: ["a:1"], sizeBytes: 5 },
  ]);
  assert.equal(nodeStatusImages(images, 2).length, 2);
  assert.deepEqual(nodeStatusImages(images, 0), []);
});

test("the list of images is asked for once per 30 s, also by several at once", async () => {
  const clock = new FakeClock();
  const service = new FakeImageService();
  let asked = 0;
  const { listImages } = service;
  const list = new ImageList(
    {
      listImages: (...call) => {
        asked++;
        return listImages(...call);
      },
    },
    clock,
  );
  service.preload("a:1", { id: "a" });
  await Promise.all([list.get(signal), list.get(signal)]);
  await clock.advance(29_999);
  assert.equal((await list.get(signal)).length, 1);
  assert.equal(asked, 1);
  await clock.advance(1);
  await list.get(signal);
  assert.equal(asked, 2);
});

for (const [info, image] of [
  [{ config: '{"sandboxImage":"registry.k8s.io/pause:3.6"}' }, "registry.k8s.io/pause:3.6"],
  [{ config: "{}" }, undefined],
  [{ config: "{" }, undefined],
  [{}, undefined],
] as const) {
  test(`sandbox image from ${JSON.stringify(info)}`, () => assert.equal(sandboxImageOf(info), image));
}

test("a time of day that is set back holds up neither the rounds nor the removal of old images", async () => {
  const node = new Node({ maximumAgeMs: 10 * minute });
  node.add("old", 10n);
  await node.collect();
  node.clock.setBack(5 * 60 * minute);
  await node.collect();
  assert.ok(node.gc.nextCheckAt - node.clock.monotonic() <= 5 * minute);
  assert.deepEqual(await node.collect(11 * minute), ["old"]);
});
