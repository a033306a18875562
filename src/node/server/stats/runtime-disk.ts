import type { ContainerStats, FilesystemUsage } from "../../../connections/cri/index.ts";
import type { DirectoryUsage } from "../../../connections/host/index.ts";
import { messageOf } from "../../../ground/base/index.ts";
import { type FileSystemFigures, fileSystemFigures } from "./file-system-figures.ts";
import type { StatsPorts } from "./ports.ts";

/** The file systems of the node, and what the runtime has on them. */
export interface NodeDisk {
  readonly at: number;
  readonly root: FileSystemFigures;
  readonly images: RuntimeFileSystem | undefined;
  readonly containers: RuntimeFileSystem | undefined;
  /** What containers have written, by id. */
  readonly layers: ReadonlyMap<string, DirectoryUsage>;
}

/** A file system that the runtime keeps images or containers on, and what these take of it. */
export interface RuntimeFileSystem {
  readonly fileSystem: FileSystemFigures;
  readonly used: DirectoryUsage;
}

export async function readNodeDisk(ports: StatsPorts, signal: AbortSignal): Promise<NodeDisk> {
  const { clock, settings, runtime, images } = ports;
  const [root, imageInfo, { stats }] = await Promise.all([
    orFail("rootFs", fileSystemFigures(settings.rootDir)),
    orFail("imageFs", images.imageFsInfo({}, { signal })),
    orFail("container", runtime.listContainerStats({ filter: undefined }, { signal })),
  ]);
  const [image] = imageInfo.imageFilesystems;
  const [container = image] = imageInfo.containerFilesystems;
  return {
    at: clock.now(),
    root,
    images: await orFail("imageFs", runtimeFileSystem(image)),
    containers: await orFail("imageFs", runtimeFileSystem(container)),
    layers: new Map(stats.map((each) => [each.attributes?.id ?? "", layerOf(each)])),
  };
}

async function runtimeFileSystem(usage: FilesystemUsage | undefined): Promise<RuntimeFileSystem | undefined> {
  if (usage?.fsId === undefined) return undefined;
  return { fileSystem: await fileSystemFigures(usage.fsId.mountpoint), used: usageOf(usage) };
}

function layerOf({ writableLayer }: ContainerStats): DirectoryUsage {
  return writableLayer === undefined ? { bytes: 0, inodes: 0 } : usageOf(writableLayer);
}

function usageOf({ usedBytes, inodesUsed }: FilesystemUsage): DirectoryUsage {
  return { bytes: Number(usedBytes?.value ?? 0n), inodes: Number(inodesUsed?.value ?? 0n) };
}

/** The words are those that clients of the summary know. */
async function orFail<Result>(what: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw new Error(`failed to get ${what} stats: ${messageOf(error)}`, { cause: error });
  }
}
