// The connection to Linux: system calls, mounts, cgroup hierarchies, /proc, locks, systemd. Reads and acts; never decides.
export { defaultAddress, nodeAddresses } from "./addresses.ts";
export { type CgroupLayout, readCgroupLayout } from "./cgroups.ts";
export { countFiles, type DirectoryUsage } from "./count-files.ts";
export {
  containerLogsDir,
  dataDirectories,
  labelPluginDirectory,
  prepareDirectories,
} from "./data-directories.ts";
export { ensureDirectory } from "./directories.ts";
export { type FileSystemUsage, fileSystemUsage, readFileSystem } from "./file-system.ts";
export { followOnDisks, foreignMountOf, foreignPointsIn } from "./foreign-mounts.ts";
export {
  type DirectoryEntry,
  type FileName,
  HeldDirectory,
  isMountPoint,
  openPath,
} from "./held-directory.ts";
export { readHugePageSizes, readHugePages } from "./huge-pages.ts";
export { KernelLog } from "./kernel-log.ts";
export { tuneKernel } from "./kernel-settings.ts";
export { holdLockFile, LockFileHold } from "./lock-file.ts";
export { acquireLockFile, claimDirectory, DirectoryInUseError, LockContention } from "./locks.ts";
export { type LogindAccess, logindAccess } from "./logind/find.ts";
export { type Machine, readMachine, readPidLimit, readSwaps } from "./machine.ts";
export { type MemoryAlarm, openMemoryAlarm } from "./memory-alarm.ts";
export { type Mount, makeShared, mountOf, readMounts } from "./mounts.ts";
export { readAddressesOf } from "./namespace-addresses.ts";
export { connectLoopbackIn } from "./network-namespace.ts";
export { tuneOwnProcess } from "./process-limits.ts";
export { MountInTheWayError, removeTree, removeTreeIn } from "./remove-tree.ts";
export { RemovedNames } from "./removed-names.ts";
export { type IscsiSession, ScsiDisks } from "./scsi.ts";
export { isAppArmorEnabled, isSelinuxEnabled, readContainerFileLabel } from "./security.ts";
export { checkSwap } from "./swap.ts";
export { canMountWithoutSwap } from "./swapless-memory.ts";
export { callsUnderWay, loadSyscalls, mountFlags, SyscallError, unmountFlags } from "./syscalls.ts";
export { findSystemd } from "./systemd/find.ts";
export type { UnitProperty } from "./systemd/manager.ts";
export { notifySystemd } from "./systemd/notify.ts";
export { type ServiceEnvironment, ServiceManager } from "./systemd/service-manager.ts";
export { type RunTool, runTool, ToolError } from "./tools.ts";
export { type CpuPlace, type MachineTopology, readTopology } from "./topology.ts";
export { type TreeVisitor, walkTree } from "./tree-walk.ts";
export {
  blockDeviceName,
  type CgroupDetails,
  CgroupPaths,
  type CgroupReader,
  type CpuUsage,
  cgroupReader,
  type DiskActivity,
  type InterfaceUsage,
  type MemoryUsage,
  mostDescriptors,
  type Pressure,
  type Pressures,
  type ProcessUsage,
  readBootTime,
  readCgroupOf,
  readDiskActivity,
  readDisksTotal,
  readKernelFile,
  readMemoryOfMachine,
  readNetworkOf,
  readOomKills,
  readOpenFileLimit,
  readOpenFiles,
  readProcess,
  readTaskCount,
  readTasks,
} from "./usage/index.ts";
export { WalkTurns } from "./walk-turns.ts";
