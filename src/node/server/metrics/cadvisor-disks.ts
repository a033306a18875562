import { blockDeviceName, type DiskActivity, readDiskActivity } from "../../../connections/host/index.ts";
import type { CgroupFamily } from "./cadvisor-families.ts";
import type { CgroupRow } from "./cadvisor-rows.ts";

const sectorBytes = 512;

/** What is told of disks: by cgroup what it read and wrote, of the machine's own disk all that the kernel counts. */
export function diskFamilies(hostRoot: string): readonly CgroupFamily[] {
  const names = new Map<string, string>();
  const nameOf = ({ major, minor }: { readonly major: number; readonly minor: number }): string => {
    const key = `${major}:${minor}`;
    const name = names.get(key) ?? blockDeviceName(major, minor, hostRoot);
    names.set(key, name);
    return name;
  };
  /** One reading for all families. */
  const activities = new Map<CgroupRow, DiskActivity | undefined>();
  const activityOf = (row: CgroupRow): DiskActivity | undefined => {
    if (row.disk === undefined) return undefined;
    if (!activities.has(row)) activities.set(row, readDiskActivity(row.disk.major, row.disk.minor, hostRoot));
    return activities.get(row);
  };
  type Io = CgroupRow["details"]["io"][number];
  /** The kernel's count of the machine's own disk, unless the cgroups' count has that disk already. */
  const both =
    (ofCgroup: ((io: Io) => number) | undefined, ofDisk: (disk: DiskActivity) => number) => (row: CgroupRow) => {
      const io = ofCgroup === undefined ? [] : row.details.io;
      const disk = activityOf(row);
      const isCounted = io.some((each) => each.major === disk?.major && each.minor === disk.minor);
      return [
        ...(ofCgroup === undefined ? [] : io.map((each) => [{ device: nameOf(each) }, ofCgroup(each)] as const)),
        ...(disk === undefined || isCounted ? [] : [[{ device: nameOf(disk) }, ofDisk(disk)] as const]),
      ];
    };
  const total = (name: string, help: string, values: CgroupFamily["values"]): CgroupFamily => ({
    name: `container_fs_${name}_total`,
    type: "counter",
    help,
    values,
  });
  const whole = (
    name: string,
    help: string,
    value: (disk: NonNullable<CgroupRow["disk"]>) => number,
  ): CgroupFamily => ({
    name: `container_fs_${name}`,
    type: "gauge",
    help,
    values: ({ disk }) => (disk === undefined ? [] : [[{ device: nameOf(disk) }, value(disk)]]),
  });
  return [
    whole("limit_bytes", "Bytes that the disk can hold", ({ fileSystem }) => fileSystem.capacityBytes),
    whole("usage_bytes", "Bytes that are used of the disk", ({ fileSystem }) => fileSystem.usedBytes),
    whole("inodes_total", "Files that the disk can hold", ({ fileSystem }) => fileSystem.inodes),
    whole("inodes_free", "Files that can still be made", ({ fileSystem }) => fileSystem.inodesFree),
    total(
      "reads_bytes",
      "Bytes read",
      both(
        (io) => io.readBytes,
        (disk) => disk.sectorsRead * sectorBytes,
      ),
    ),
    total(
      "writes_bytes",
      "Bytes written",
      both(
        (io) => io.writeBytes,
        (disk) => disk.sectorsWritten * sectorBytes,
      ),
    ),
    total(
      "reads",
      "Reads",
      both(
        (io) => io.reads,
        (disk) => disk.reads,
      ),
    ),
    total(
      "writes",
      "Writes",
      both(
        (io) => io.writes,
        (disk) => disk.writes,
      ),
    ),
    total(
      "sector_reads",
      "Sectors read",
      both(undefined, (disk) => disk.sectorsRead),
    ),
    total(
      "sector_writes",
      "Sectors written",
      both(undefined, (disk) => disk.sectorsWritten),
    ),
    total(
      "reads_merged",
      "Reads that were joined",
      both(undefined, (disk) => disk.readsMerged),
    ),
    total(
      "writes_merged",
      "Writes that were joined",
      both(undefined, (disk) => disk.writesMerged),
    ),
    total(
      "read_seconds",
      "Time spent on reads",
      both(undefined, (disk) => disk.readMs / 1000),
    ),
    total(
      "write_seconds",
      "Time spent on writes",
      both(undefined, (disk) => disk.writeMs / 1000),
    ),
    total(
      "io_time_seconds",
      "Time in which the disk was busy",
      both(undefined, (disk) => disk.busyMs / 1000),
    ),
    total(
      "io_time_weighted_seconds",
      "The same, times what was under way",
      both(undefined, (disk) => disk.weightedMs / 1000),
    ),
    {
      name: "container_fs_io_current",
      type: "gauge",
      help: "Reads and writes under way",
      values: both(undefined, (disk) => disk.inProgress),
    },
    {
      name: "container_blkio_device_usage_total",
      type: "counter",
      help: "Bytes read from and written to devices",
      values: ({ details }) =>
        details.io.flatMap((io) => {
          const labels = { device: nameOf(io), major: String(io.major), minor: String(io.minor) };
          return [
            [{ ...labels, operation: "Read" }, io.readBytes],
            [{ ...labels, operation: "Write" }, io.writeBytes],
          ] as const;
        }),
    },
  ];
}
