// What pods may use: their cgroups, those of their classes, and the node's share for all of them.

export type { CgroupDriver } from "./cgroup-driver.ts";
export { kernelCgroupFiles } from "./cgroup-files.ts";
export { CgroupTree } from "./cgroup-tree.ts";
export { limitPods, limitReserved, type NodeAllocatableSettings } from "./node-allocatable.ts";
export { type PodCgroupPorts, PodCgroups } from "./pod-cgroups.ts";
export type { PodValueSettings } from "./pod-values.ts";
export { SliceTree } from "./slice-tree.ts";
export { canControlSwap } from "./swap-control.ts";
