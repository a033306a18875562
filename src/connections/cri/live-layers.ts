import type { CriClient } from "./client.ts";
import { criNamespace } from "./containerd-events.ts";

export interface LayerUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** Tells what a container has written until now; undefined: the runtime can't. */
export type MeasureLayer = (
  container: { readonly id: string; readonly mountpoint: string },
  signal: AbortSignal,
) => Promise<LayerUsage | undefined>;

/**
 * containerd's statistics are up to ten seconds old, in which a container can fill a disk and look as if it had written
 * nothing. Its snapshots can be asked for as well, and are measured then. A snapshot has the name of its container, and
 * which kind it is of can be told by its directory.
 */
export function liveLayers(cri: Pick<CriClient, "containerdUsage">): MeasureLayer {
  return async ({ id, mountpoint }, signal) => {
    const snapshotter = /\/io\.containerd\.snapshotter\.v1\.([\w.-]+)\/?$/.exec(mountpoint)?.[1];
    if (snapshotter === undefined) return undefined;
    const { size, inodes } = await cri.containerdUsage({ snapshotter, key: id }, criNamespace, signal);
    return { bytes: Number(size), inodes: Number(inodes) };
  };
}
