// Eviction: which pods must go because they take more of the node than they may.
export { isExempt, PodDiskMeter } from "./pod-disk.ts";
export type { ContainerDisk, PodDisk, StorageWatchPorts } from "./storage-watch.ts";
export { StorageWatch } from "./storage-watch.ts";
