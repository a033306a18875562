// Eviction: which pods must go because they take more of the node than they may.
export { evict } from "./evict.ts";
export { isExempt, PodDiskMeter } from "./pod-disk.ts";
export { StorageWatch } from "./storage-watch.ts";
