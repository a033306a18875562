// Graceful shutdown of the node: logind is asked to wait, pods end in the order of their priority, and are reported.
export { GracefulShutdown } from "./graceful-shutdown.ts";
export { shutdownGroups } from "./plan.ts";
export type { ShutdownReport } from "./report.ts";
export { ShutdownProgress } from "./shutdown-progress.ts";
export { ShutdownStateFile } from "./state-file.ts";
