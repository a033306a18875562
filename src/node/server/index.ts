// What the agent listens on: health, the local socket, the node's API with and without credentials. They read, never decide.
export { kubeReviews } from "./auth/kube-reviews.ts";
export { noReviews, type Reviews } from "./auth/reviews.ts";
export { Figures } from "./figures.ts";
export { HealthRegistry } from "./health.ts";
export { watchApi, watchDisk, watchEventLoop, watchLog } from "./health-checks.ts";
export { describeHealth, HealthzServer } from "./healthz.ts";
export { LocalSocketServer } from "./local-socket.ts";
export type { Counter, Histogram, MetricRegistry } from "./metrics/registry.ts";
export { type PodResourcesPorts, servePodResources } from "./pod-resources/index.ts";
export type { DryRun, DryRuns, LocalViews, LogVerbosity, RuntimeViews } from "./ports.ts";
export type { NodeApiPorts } from "./serve-node-api.ts";
export { LazyStatistics } from "./stats/lazy-statistics.ts";
export type { StatsPorts } from "./stats/ports.ts";
export { startWatchdog } from "./watchdog.ts";

/** The API of the node is large; an agent that does not serve it need not load it. */
export async function loadNodeApi() {
  return await import("./serve-node-api.ts");
}
export type { PodViewChange } from "../../ground/model/index.ts";
