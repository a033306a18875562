// What pods may use: their cgroups, those of their classes, and the node's share for all of them.

export { Actuations, Allocations } from "./allocation/index.ts";
export { type CgroupFiles, kernelCgroupFiles } from "./cgroup-files.ts";
export { CgroupTree } from "./cgroup-tree.ts";
export type { NodeAllocatableSettings } from "./node-allocatable.ts";
export { NodeCgroups } from "./node-cgroups.ts";
export { NodeResources, noDevices } from "./node-resources.ts";
export { PodCgroups } from "./pod-cgroups.ts";
export { canControlSwap } from "./swap-control.ts";
