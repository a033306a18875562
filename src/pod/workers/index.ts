// One serial worker per pod: lifecycle states, plan (pure), apply (effects).
export { crashBackoffOf } from "./crash-backoff-settings.ts";
export { endByNode } from "./end-by-node.ts";
export { PodCheckpointFiles } from "./pod-checkpoint.ts";
export { PodChurn } from "./pod-churn.ts";
export { PodProbes } from "./pod-probes.ts";
export { PodSetup, type PodSetupPorts } from "./pod-setup.ts";
export type { PodState, TerminateRequest } from "./pod-state.ts";
export { PodWorkers } from "./pod-workers.ts";
export type { WorkerMetrics, WorkerPorts } from "./ports.ts";
export { hasWhatWasPromised, Resizer, type ResizerPorts } from "./resizer.ts";
export { StartSlots, startSlotsFor } from "./start-slots.ts";
export { WorkerTable } from "./worker-table.ts";
