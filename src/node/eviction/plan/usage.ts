import type { EvictionSignal } from "../../../ground/config/index.ts";
import type { DiskLayout } from "./signals.ts";

/** Bytes and files. */
export interface Held {
  readonly bytes: number;
  readonly inodes: number;
}

export const nothingHeld: Held = { bytes: 0, inodes: 0 };

/** What a pod has on the node's disks, by what becomes of it. */
export interface DiskUse {
  /** What its containers have written to their own file systems. */
  readonly layers: Held;
  /** They stay until the pod is deleted. */
  readonly logs: Held;
  /** Volumes on the node's disk that go with the pod. */
  readonly ownVolumes: Held;
  /** Directories of the node that it uses; they stay. */
  readonly hostVolumes: Held;
}

/** What a pod uses; a part that is undefined could not be measured, or nobody asked for it. */
export interface PodUse {
  readonly memoryBytes?: number | undefined;
  readonly tasks?: number | undefined;
  readonly disk?: DiskUse | undefined;
  readonly containers?: readonly ContainerUse[] | undefined;
}

export interface ContainerUse {
  readonly name: string;
  readonly memoryBytes?: number | undefined;
  /** What it has written, logs included. */
  readonly diskBytes?: number | undefined;
}

/** How much the pod uses of what the signal is about, as pods are ranked by it. */
export function useFor(signal: EvictionSignal, use: PodUse, layout: DiskLayout): number | undefined {
  return amountFor(signal, use, (disk, place) => countedParts(disk, place, layout));
}

/** How much there will be more when the pod has gone. */
export function reliefFor(signal: EvictionSignal, use: PodUse, layout: DiskLayout): number | undefined {
  return amountFor(signal, use, (disk, place) => {
    const parts = countedParts(disk, place, layout);
    return parts.filter((part) => part !== disk.logs && part !== disk.hostVolumes);
  });
}

type DiskPlace = "nodefs" | "imagefs" | "containerfs";

function amountFor(
  signal: EvictionSignal,
  { memoryBytes, tasks, disk }: PodUse,
  partsOn: (disk: DiskUse, place: DiskPlace) => readonly Held[],
): number | undefined {
  switch (signal) {
    case "memory.available":
    case "allocatableMemory.available":
      return memoryBytes;
    case "pid.available":
      return tasks;
    case "nodefs.available":
    case "imagefs.available":
    case "containerfs.available":
      return disk && sum(partsOn(disk, placeOf(signal)), "bytes");
    case "nodefs.inodesFree":
    case "imagefs.inodesFree":
    case "containerfs.inodesFree":
      return disk && sum(partsOn(disk, placeOf(signal)), "inodes");
  }
}

/** What the pod has on that disk. */
function countedParts(
  { layers, logs, ownVolumes, hostVolumes }: DiskUse,
  place: DiskPlace,
  layout: DiskLayout,
): readonly Held[] {
  const nodeFiles = [logs, ownVolumes, hostVolumes];
  switch (layout) {
    case "one disk for all":
      return [layers, ...nodeFiles];
    case "images apart":
      return place === "nodefs" ? nodeFiles : [layers];
    case "containers apart":
      return place === "imagefs" ? [] : [layers, ...nodeFiles];
  }
}

function placeOf(signal: EvictionSignal): DiskPlace {
  return signal.startsWith("nodefs.") ? "nodefs" : signal.startsWith("imagefs.") ? "imagefs" : "containerfs";
}

function sum(parts: readonly Held[], unit: keyof Held): number {
  return parts.reduce((total, part) => total + part[unit], 0);
}
