// Liveness, readiness and startup probes: one loop per probe, results that outlive the agent, HTTP as hooks need it too.
export { FileProbeStore } from "./file-store.ts";
export { isReady, isStarted } from "./flags.ts";
export { HttpGetError, httpGet } from "./http/get.ts";
export type {
  ExecInContainer,
  ExecResult,
  ProbeKind,
  ProbeMeasurement,
  ProbeResult,
  ProbeStore,
  SavedResult,
} from "./ports.ts";
export { type PodProbeResults, type ProbeListener, type ProbeObservation, Probes, type ProbesPorts } from "./probes.ts";
export { probeRunner, type RunProbe } from "./run-probe.ts";
export { httpTarget, ProbeTargetError } from "./target.ts";
export type { SeenContainer } from "./worker.ts";
