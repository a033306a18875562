import { readKernelFile } from "./kernel-file.ts";

/** What a disk has done since the machine was started. */
export interface DiskActivity {
  readonly major: number;
  readonly minor: number;
  readonly reads: number;
  readonly readsMerged: number;
  readonly sectorsRead: number;
  readonly readMs: number;
  readonly writes: number;
  readonly writesMerged: number;
  readonly sectorsWritten: number;
  readonly writeMs: number;
  readonly inProgress: number;
  readonly busyMs: number;
  readonly weightedMs: number;
}

/** The disk with these numbers, by the kernel's list of disks; undefined: it has none there. */
export function readDiskActivity(major: number, minor: number, root = ""): DiskActivity | undefined {
  const text = readKernelFile(`${root}/proc/diskstats`) ?? "";
  const rest = new RegExp(`^\\s*${major}\\s+${minor}\\s+\\S+\\s+(.*)$`, "m").exec(text)?.[1];
  if (rest === undefined) return undefined;
  const values = rest.trim().split(/\s+/).map(Number);
  const at = (index: number): number => values[index] ?? 0;
  return {
    major,
    minor,
    reads: at(0),
    readsMerged: at(1),
    sectorsRead: at(2),
    readMs: at(3),
    writes: at(4),
    writesMerged: at(5),
    sectorsWritten: at(6),
    writeMs: at(7),
    inProgress: at(8),
    busyMs: at(9),
    weightedMs: at(10),
  };
}

/** `/dev/NAME` of a device, or its numbers where the kernel has no name for it. */
export function blockDeviceName(major: number, minor: number, root = ""): string {
  const name = /^DEVNAME=(.+)$/m.exec(readKernelFile(`${root}/sys/dev/block/${major}:${minor}/uevent`) ?? "")?.[1];
  return name === undefined ? `${major}:${minor}` : `/dev/${name}`;
}
