import type { Stats } from "node:fs";
import { lstat, readFile, stat, statfs } from "node:fs/promises";
import { HeldDirectory, isMissing } from "../../host/index.ts";

/** How full something is, in the terms of the stats API. */
export interface VolumeUsage {
  readonly capacityBytes: bigint;
  readonly availableBytes: bigint;
  readonly usedBytes: bigint;
  readonly inodes: bigint;
  readonly inodesFree: bigint;
  readonly inodesUsed: bigint;
}

const blockBytes = 512n;
const statsAtOnce = 32;

/** Counts what lies below a directory, and asks the file system for the rest. */
export async function usageByCounting(path: string, signal: AbortSignal): Promise<VolumeUsage> {
  const [fs, counted] = await Promise.all([usageOfFileSystem(path), countBelow(path, signal)]);
  return { ...fs, usedBytes: counted.bytes, inodesUsed: counted.inodes };
}

/** Asks the file system that the path lies on. */
export async function usageOfFileSystem(path: string): Promise<VolumeUsage> {
  const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(path, { bigint: true });
  return {
    capacityBytes: blocks * bsize,
    availableBytes: bavail * bsize,
    usedBytes: (blocks - bfree) * bsize,
    inodes: files,
    inodesFree: ffree,
    inodesUsed: files - ffree,
  };
}

/** The size of a block device, as the kernel lists it. */
export async function usageOfDevice(path: string): Promise<VolumeUsage> {
  const found = await stat(path);
  if (!found.isBlockDevice()) throw new Error(`${path} is not a block device`);
  const major = (found.rdev >> 8) & 0xfff;
  const minor = (found.rdev & 0xff) | ((found.rdev >> 12) & 0xfff00);
  const sectors = BigInt((await readFile(`/sys/dev/block/${major}:${minor}/size`, "utf8")).trim());
  const capacityBytes = sectors * blockBytes;
  return { capacityBytes, availableBytes: 0n, usedBytes: 0n, inodes: 0n, inodesFree: 0n, inodesUsed: 0n };
}

interface Count {
  bytes: bigint;
  inodes: bigint;
  readonly device: number;
  /** Files with several names are counted once. */
  readonly linked: Set<string>;
  readonly signal: AbortSignal;
}

/** Like du: blocks in use, on one file system, no link followed. */
export async function countBelow(path: string, signal: AbortSignal): Promise<{ bytes: bigint; inodes: bigint }> {
  using root = await HeldDirectory.open(path);
  const found = await lstat(`${root.self}/.`);
  const count: Count = { bytes: 0n, inodes: 0n, device: found.dev, linked: new Set(), signal };
  add(count, found);
  await countEntries(count, root);
  return { bytes: count.bytes, inodes: count.inodes };
}

async function countEntries(count: Count, directory: HeldDirectory): Promise<void> {
  count.signal.throwIfAborted();
  const entries = await directory.entries();
  const directories: string[] = [];
  for (let start = 0; start < entries.length; start += statsAtOnce) {
    count.signal.throwIfAborted();
    const batch = entries.slice(start, start + statsAtOnce);
    const found = await Promise.all(batch.map(({ name }) => lstatIfThere(directory.path(name))));
    for (const [index, stats] of found.entries()) {
      if (stats === undefined || stats.dev !== count.device) continue;
      add(count, stats);
      const name = batch[index]?.name;
      if (stats.isDirectory() && name !== undefined) directories.push(name);
    }
  }
  for (const name of directories) {
    const child = await directory.enter(name).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    if (child === undefined) continue;
    using held = child;
    await countEntries(count, held);
  }
}

function add(count: Count, { blocks, nlink, ino, dev }: Stats): void {
  if (nlink > 1) {
    const identity = `${dev}:${ino}`;
    if (count.linked.has(identity)) return;
    count.linked.add(identity);
  }
  count.bytes += BigInt(blocks) * blockBytes;
  count.inodes += 1n;
}

/** Files come and go while we count. */
async function lstatIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
