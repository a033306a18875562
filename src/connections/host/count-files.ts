import type { Stats } from "node:fs";
import { lstat } from "node:fs/promises";
import { ifThere, mapAtMost } from "../../ground/base/index.ts";
import { HeldDirectory } from "./held-directory.ts";
import { walkTree } from "./tree-walk.ts";

export interface DirectoryUsage {
  readonly bytes: number;
  readonly inodes: number;
}

interface Counting {
  readonly depth: "all" | "files directly in it";
  /** Waited for before each step, so that long walks don't hold up short ones. */
  readonly pace?: () => Promise<void>;
}

const blockBytes = 512;
const statsAtOnce = 32;

/**
 * Like du: blocks in use by a file, or by a directory and what lies below it, on one mount, no link followed. A file with
 * several names counts once. Names are bytes.
 */
export async function countFiles(
  path: string,
  { depth, pace }: Counting,
  signal: AbortSignal,
): Promise<DirectoryUsage> {
  const count = new Count();
  const top = await lstat(path);
  if (top.isDirectory()) await countBelow(path, count, { depth, ...(pace && { pace }) }, signal);
  else count.add(top);
  return { bytes: Math.round(count.blocks) * blockBytes, inodes: Math.round(count.inodes) };
}

async function countBelow(path: string, count: Count, { depth, pace }: Counting, signal: AbortSignal): Promise<void> {
  using root = await HeldDirectory.open(path);
  await walkTree(
    root,
    {
      // A directory counts when it is entered: what is mounted on it is never asked.
      enter: async (directory) => {
        if (depth === "all") count.add(directory.stat());
      },
      entries: async (directory, entries) => {
        const others = entries.filter((entry) => !entry.isDirectory());
        await mapAtMost(statsAtOnce, others, async ({ name }) => {
          // Files come and go while we count.
          const stats = await ifThere(lstat(directory.path(name)));
          if (stats !== undefined && !stats.isDirectory()) count.add(stats);
        });
        return depth === "all" ? entries.filter((entry) => entry.isDirectory()).map(({ name }) => name) : [];
      },
      whenGone: "skip",
      ...(pace && { pace }),
    },
    signal,
  );
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
