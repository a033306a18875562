import type { Stats } from "node:fs";
import { lstat, readFile, stat } from "node:fs/promises";
import {
  type FileSystemUsage,
  HeldDirectory,
  readFileSystem,
  type WalkTurn,
  type WalkTurns,
  walkTree,
} from "../../../connections/host/index.ts";
import { isMissing, mapAtMost } from "../../../ground/base/index.ts";

/** How full a volume is, in the terms of the stats API. */
export type VolumeUsage = FileSystemUsage;

const blockBytes = 512n;
const statsAtOnce = 32;

/** Counts what lies below a directory, and asks the file system for the rest. */
export async function usageByCounting(path: string, walks: WalkTurns, signal: AbortSignal): Promise<VolumeUsage> {
  const counted = await walks.run((turn) => countBelow(path, turn), signal);
  const fs = await readFileSystem(path);
  return { ...fs, usedBytes: counted.bytes, inodesUsed: counted.inodes };
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

/** Like du: blocks in use, on one mount, no link followed. */
export async function countBelow(path: string, pace: WalkTurn): Promise<{ bytes: bigint; inodes: bigint }> {
  using root = await HeldDirectory.open(path);
  const count = new Count();
  await walkTree(
    root,
    {
      // A directory counts when it is entered: what is mounted on it is never asked.
      enter: async (directory) => count.add(directory.stat()),
      entries: async (directory, entries) => {
        const others = entries.filter((entry) => !entry.isDirectory());
        await mapAtMost(statsAtOnce, others, async ({ name }) => {
          const stats = await lstatIfThere(directory.path(name));
          if (stats !== undefined && !stats.isDirectory()) count.add(stats);
        });
        return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
      },
      whenGone: "skip",
      pace: () => pace.turn(),
    },
    pace.signal,
  );
  return { bytes: BigInt(Math.round(count.blocks)) * blockBytes, inodes: BigInt(Math.round(count.inodes)) };
}

// A pod may have more files with several names than memory.
const mostLinkedKnown = 100_000;

class Count {
  blocks = 0;
  inodes = 0;
  #device: number | undefined;
  /** Files with several names are counted once. */
  readonly #linked = new Set<number>();

  add(stats: Stats): void {
    const { dev, ino, nlink, blocks } = stats;
    this.#device ??= dev;
    if (dev !== this.#device) return;
    let share = 1;
    if (nlink > 1 && !stats.isDirectory()) {
      if (this.#linked.has(ino)) return;
      // Too many to remember: each name counts for its share of the file.
      if (this.#linked.size >= mostLinkedKnown) share = 1 / nlink;
      else this.#linked.add(ino);
    }
    this.blocks += blocks * share;
    this.inodes += share;
  }
}

/** Files come and go while we count. */
async function lstatIfThere(path: Buffer): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
