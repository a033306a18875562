// What pods may use: their cgroups, those of their classes, and the node's share for all of them.

export { memoryForPods } from "./allocatable-values.ts";
export { Actuations, Allocations } from "./allocation/index.ts";
export { type CgroupFiles, kernelCgroupFiles } from "./cgroup-files.ts";
export { CgroupTree } from "./cgroup-tree.ts";
export { ClaimError, ClaimHealth, ClaimManager, ClaimSweep, claimReport, claimsShown } from "./claims/index.ts";
export { CpusetKeeper, type KeptContainer } from "./cpu/cpuset-keeper.ts";
export { cpusetsInForce } from "./cpu/cpusets-in-force.ts";
export {
  DeviceAdmission,
  DeviceManager,
  DeviceProvider,
  deviceReport,
  type OpenedPlugins,
  PluginListener,
} from "./devices/index.ts";
export { diskFiles } from "./disk-files.ts";
export type { NodeAllocatableSettings } from "./node-allocatable.ts";
export { type ForeseenCgroup, NodeCgroups } from "./node-cgroups.ts";
export { NodeResources } from "./node-resources.ts";
export { nodeShareOf } from "./node-share.ts";
export { type Giving, Placement, type PlacementHooks, type PlacementTrial } from "./placement.ts";
export { placementReport } from "./placement-report.ts";
export { placementSettingsOf } from "./placement-settings.ts";
export { type PlacementView, placementView } from "./placement-view.ts";
export { PodCgroups } from "./pod-cgroups.ts";
export type { ClassReserve } from "./qos-cgroup-limits.ts";
export { findRunning } from "./running-containers.ts";
export { canControlSwap } from "./swap-control.ts";
export { type HostProcesses, hostProcesses, SystemCgroups } from "./system-cgroups.ts";
