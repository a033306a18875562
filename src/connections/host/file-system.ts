import type { BigIntStatsFs } from "node:fs";
import { statfs } from "node:fs/promises";

/** How full a file system is, in the terms of the stats API. */
export interface FileSystemUsage {
  readonly capacityBytes: bigint;
  /** What others than root may still use. */
  readonly availableBytes: bigint;
  readonly usedBytes: bigint;
  readonly inodes: bigint;
  readonly inodesFree: bigint;
  readonly inodesUsed: bigint;
}

type FileSystemFigures = Pick<BigIntStatsFs, "bsize" | "blocks" | "bfree" | "bavail" | "files" | "ffree">;

/** The file system that holds the path. */
export async function readFileSystem(path: string): Promise<FileSystemUsage> {
  return fileSystemUsage(await statfs(path, { bigint: true }));
}

/** What the kernel's figures mean, whoever asked it for them. */
export function fileSystemUsage({ bsize, blocks, bfree, bavail, files, ffree }: FileSystemFigures): FileSystemUsage {
  return {
    capacityBytes: blocks * bsize,
    availableBytes: bavail * bsize,
    usedBytes: (blocks - bfree) * bsize,
    inodes: files,
    inodesFree: ffree,
    inodesUsed: files - ffree,
  };
}
