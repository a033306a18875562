import { readFileSystem } from "../../../connections/host/index.ts";

/** How full a file system is, in numbers as JSON and metrics have them. */
export interface FileSystemFigures {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

export async function fileSystemFigures(path: string): Promise<FileSystemFigures> {
  const { capacityBytes, availableBytes, usedBytes, inodes, inodesFree } = await readFileSystem(path);
  return {
    capacityBytes: Number(capacityBytes),
    availableBytes: Number(availableBytes),
    usedBytes: Number(usedBytes),
    inodes: Number(inodes),
    inodesFree: Number(inodesFree),
  };
}
