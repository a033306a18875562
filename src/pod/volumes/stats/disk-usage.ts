import { readFile, stat } from "node:fs/promises";
import { countFiles, type FileSystemUsage, readFileSystem, type WalkTurns } from "../../../connections/host/index.ts";

/** How full a volume is, in the terms of the stats API. */
export type VolumeUsage = FileSystemUsage;

const sectorBytes = 512n;

/** Counts what lies below a directory, and asks the file system for the rest. */
export async function usageByCounting(path: string, walks: WalkTurns, signal: AbortSignal): Promise<VolumeUsage> {
  const counted = await walks.run(
    ({ turn, signal: walking }) => countFiles(path, { depth: "all", pace: turn }, walking),
    signal,
  );
  const fs = await readFileSystem(path);
  return { ...fs, usedBytes: BigInt(counted.bytes), inodesUsed: BigInt(counted.inodes) };
}

/** The size of a block device, as the kernel lists it. */
export async function usageOfDevice(path: string): Promise<VolumeUsage> {
  const found = await stat(path);
  if (!found.isBlockDevice()) throw new Error(`${path} is not a block device`);
  const major = (found.rdev >> 8) & 0xfff;
  const minor = (found.rdev & 0xff) | ((found.rdev >> 12) & 0xfff00);
  const sectors = BigInt((await readFile(`/sys/dev/block/${major}:${minor}/size`, "utf8")).trim());
  const capacityBytes = sectors * sectorBytes;
  return { capacityBytes, availableBytes: 0n, usedBytes: 0n, inodes: 0n, inodesFree: 0n, inodesUsed: 0n };
}
