// What the machine, its cgroups and its files use, read from the kernel when somebody asks.
export { blockDeviceName, type DiskActivity, readDiskActivity } from "./block-devices.ts";
export {
  type CgroupDetails,
  type CgroupReader,
  type CgroupUsage,
  type CpuUsage,
  cgroupReader,
  type DeviceIo,
  type MemoryUsage,
  type Pressure,
  type Pressures,
} from "./cgroup-usage.ts";
export { type DirectoryUsage, readDirectoryUsage } from "./files-usage.ts";
export {
  type InterfaceUsage,
  readBootTime,
  readCgroupOf,
  readNetworkOf,
  readTaskCount,
} from "./machine-usage.ts";
export { type ProcessUsage, readOpenFileLimit, readOpenFiles, readProcess } from "./process-usage.ts";
