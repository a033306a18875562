import { loadedPart } from "../../ground/base/index.ts";

// What the agent listens on: health, the local socket, the node's API with and without credentials. They read, never decide.
export { kubeReviews } from "./auth/kube-reviews.ts";
export { noReviews, type Reviews } from "./auth/reviews.ts";
export { type DiskSample, DiskSamples } from "./disk-samples.ts";
export { HealthRegistry } from "./health.ts";
export { watchApi, watchDisk, watchEventLoop, watchLog } from "./health-checks.ts";
export { describeHealth, HealthzServer } from "./healthz.ts";
export { LocalSocketServer } from "./local-socket.ts";
export { MetricRegistries, type OtherFigures } from "./metric-registries.ts";
export { type PodResourcesPorts, servePodResources } from "./pod-resources/index.ts";
export type {
  DashboardPages,
  DoctorSummary,
  DryRun,
  DryRuns,
  LocalViews,
  LogVerbosity,
  PlanManifest,
  RolloutDesk,
  RuntimeViews,
  SelfViews,
} from "./ports.ts";
export type { NodeApiPorts } from "./serve-node-api.ts";
export { LazyStatistics } from "./stats/lazy-statistics.ts";
export type { StatsPorts } from "./stats/ports.ts";
export { startWatchdog } from "./watchdog.ts";

/** The API of the node is large; an agent that does not serve it need not load it. */
export async function loadNodeApi() {
  return await loadedPart(import("./serve-node-api.ts"));
}
/** Logs of containers, for those who show them in another form than the API of the node does. */
export async function loadLogs() {
  return (await loadedPart(import("./logs/copy-log.ts"))).copyLog;
}

/** The answer of /stats/summary, for those who show it in another form. */
export async function loadSummary() {
  return (await loadedPart(import("./stats/summary.ts"))).summaryOf;
}
export type { PodViewChange } from "../../ground/model/index.ts";
