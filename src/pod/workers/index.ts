// One serial worker per pod: lifecycle states, plan (pure), apply (effects).
export { PodCheckpointFiles } from "./pod-checkpoint.ts";
export type { PodState, TerminateRequest, TerminationCause } from "./pod-state.ts";
export { PodWorkers } from "./pod-workers.ts";
export type {
  KillerPort,
  PodCheckpoint,
  PodCheckpointPort,
  PodObserverPort,
  PodSetupPort,
  ProbesPort,
  StarterPort,
  StatusPort,
  WorkerMetrics,
  WorkerPorts,
} from "./ports.ts";
