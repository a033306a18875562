// One serial worker per pod: lifecycle states, plan (pure), apply (effects).
export { PodMemoryFiles } from "./pod-memory.ts";
export type { PodState, TerminateRequest, TerminationCause } from "./pod-state.ts";
export { PodWorkers } from "./pod-workers.ts";
export type {
  KillerPort,
  PodMemory,
  PodMemoryPort,
  PodObserverPort,
  PodSetupPort,
  ProbesPort,
  StarterPort,
  StatusPort,
  WorkerMetrics,
  WorkerPorts,
} from "./ports.ts";
