// Eviction: which pods must go because they take more of the node than they may, or because the node runs short.

export { NodePressure } from "./current-pressure.ts";
export { drainDryRun } from "./drain-dry-run.ts";
export { DryRunQuestionError, evictionDryRun, pretendedSignals } from "./dry-run.ts";
export { type EvictPorts, evict } from "./evict.ts";
export { exemptionOf } from "./exemption.ts";
export type { CandidateLife } from "./plan/planner.ts";
export { PodDiskMeter } from "./pod-disk.ts";
export { StorageWatch } from "./storage-watch.ts";
export { DiskSignals } from "./watch/disk-signals.ts";
export { DiskUses } from "./watch/disk-uses.ts";
export { EvictionManager } from "./watch/manager.ts";
export { MemoryAlarms } from "./watch/memory-alarms.ts";
export { PodMeter } from "./watch/pod-meter.ts";
export type { PressureSources } from "./watch/ports.ts";
export { readSignals } from "./watch/signal-reader.ts";
