import type { FilesystemUsage, ImageService } from "../../connections/cri/index.ts";
import { readFileSystem } from "../../connections/host/index.ts";

/** The file system that holds the images. */
export interface ImageFs {
  readonly mountpoint: string;
  readonly capacityBytes: bigint;
  readonly availableBytes: bigint;
  readonly inodes: bigint;
  readonly inodesFree: bigint;
  /** What images use of it. */
  readonly usedBytes: bigint;
  readonly inodesUsed: bigint;
}

/** What the runtime says of its image store, completed by what the kernel says of the file system below it. */
export async function readImageFs(images: Pick<ImageService, "imageFsInfo">, signal: AbortSignal): Promise<ImageFs> {
  const [first] = (await images.imageFsInfo({}, { signal })).imageFilesystems;
  if (first === undefined) throw new Error("imageFs information is unavailable");
  return await completeUsage(first);
}

async function completeUsage({ fsId, usedBytes, inodesUsed }: FilesystemUsage): Promise<ImageFs> {
  const mountpoint = fsId?.mountpoint ?? "";
  const { capacityBytes, availableBytes, inodes, inodesFree } = await readFileSystem(mountpoint);
  return {
    mountpoint,
    capacityBytes,
    availableBytes,
    inodes,
    inodesFree,
    usedBytes: usedBytes?.value ?? 0n,
    inodesUsed: inodesUsed?.value ?? 0n,
  };
}
