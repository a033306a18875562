// What the machine, its cgroups and its processes use, read from the kernel when somebody asks.
export { blockDeviceName, type DiskActivity, readDiskActivity } from "./block-devices.ts";
export { CgroupPaths } from "./cgroup-paths.ts";
export {
  type CgroupDetails,
  type CgroupReader,
  type CpuUsage,
  cgroupReader,
  type MemoryUsage,
  type Pressure,
  type Pressures,
} from "./cgroup-usage.ts";
export { readDisksTotal } from "./disks-total.ts";
export { readKernelFile } from "./kernel-file.ts";
export {
  type InterfaceUsage,
  readBootTime,
  readCgroupOf,
  readMemoryOfMachine,
  readNetworkOf,
  readTaskCount,
  readTasks,
} from "./machine-usage.ts";
export { readOomKills } from "./oom-kills.ts";
export { mostDescriptors, type ProcessUsage, readOpenFileLimit, readOpenFiles, readProcess } from "./process-usage.ts";
