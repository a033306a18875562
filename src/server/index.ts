// The agent's own doors: health, the local socket, the node's API with and without credentials. They read, never decide.
export { type HealthCheck, type HealthEntry, HealthRegistry } from "./health.ts";
export { describeHealth, HealthzServer } from "./healthz.ts";
export { LocalSocketServer } from "./local-socket.ts";
export type { LocalViews, LogVerbosity, PodViewChange, RuntimeViews } from "./ports.ts";
export { ReadOnlyServer } from "./read-only.ts";
