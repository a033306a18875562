// Liveness, readiness and startup probes: one loop per probe, results that outlive the agent, HTTP as hooks need it too.
export { FileProbeStore } from "./file-store.ts";
export { HttpGetError, httpGet } from "./http/get.ts";
export type { ExecInContainer, ExecResult, ProbeKind, ProbeMeasurement, ProbeResult } from "./ports.ts";
export { Probes } from "./probes.ts";
export { probeRunner, type RunProbe } from "./run-probe.ts";
export { httpTarget } from "./target.ts";
