// The connection to Linux: system calls, mounts, cgroup hierarchies, /proc, locks, systemd. Reads and acts; never decides.
export { defaultAddress, nodeAddresses } from "./addresses.ts";
export { type CgroupLayout, readCgroupLayout } from "./cgroups.ts";
export { ensureDirectory } from "./directories.ts";
export { type FileSystemUsage, fileSystemUsage, readFileSystem } from "./file-system.ts";
export { followOnDisks, foreignMountOf } from "./foreign-mounts.ts";
export {
  type DirectoryEntry,
  type FileName,
  HeldDirectory,
  isMountPoint,
  openPath,
} from "./held-directory.ts";
export { readHugePageSizes, readHugePages } from "./huge-pages.ts";
export { acquireLockFile, claimDirectory, DirectoryInUseError, lockContended } from "./locks.ts";
export { type Machine, readMachine, readPidLimit, readSwaps } from "./machine.ts";
export { makeShared, mountOf, readMounts } from "./mounts.ts";
export { setOwnOomScore } from "./oom-score.ts";
export { setOpenFileLimit } from "./open-files.ts";
export { MountInTheWayError, removeTree, removeTreeIn } from "./remove-tree.ts";
export { RemovedNames } from "./removed-names.ts";
export { isAppArmorEnabled, isSelinuxEnabled, setSelinuxLabel } from "./security.ts";
export { checkSwap } from "./swap.ts";
export { loadSyscalls, mountFlags, SyscallError, unmountFlags } from "./syscalls.ts";
export { findSystemd } from "./systemd/find.ts";
export type { SystemdManager, UnitProperty } from "./systemd/manager.ts";
export { notifySystemd, type ServiceNotice } from "./systemd/notify.ts";
export { type ServiceEnvironment, ServiceManager } from "./systemd/service-manager.ts";
export { type RunTool, runTool, ToolError } from "./tools.ts";
export { type TreeVisitor, walkTree } from "./tree-walk.ts";
export {
  blockDeviceName,
  type CgroupDetails,
  type CgroupReader,
  type CpuUsage,
  cgroupReader,
  type DirectoryUsage,
  type DiskActivity,
  type InterfaceUsage,
  type MemoryUsage,
  type Pressure,
  type Pressures,
  type ProcessUsage,
  readBootTime,
  readCgroupOf,
  readDirectoryUsage,
  readDiskActivity,
  readNetworkOf,
  readOpenFileLimit,
  readOpenFiles,
  readProcess,
  readTaskCount,
} from "./usage/index.ts";
export { type WalkTurn, WalkTurns } from "./walk-turns.ts";
