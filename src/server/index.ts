// The agent's own doors: health, the local socket, the read-only port. They read, never decide.
export { type HealthCheck, type HealthEntry, HealthRegistry, type HealthState } from "./health.ts";
export { describeHealth, type HealthzPorts, HealthzServer } from "./healthz.ts";
export { type LocalSocketPorts, LocalSocketServer } from "./local-socket.ts";
export type { LocalViews, LogVerbosity, PodViewChange } from "./ports.ts";
export { ReadOnlyServer } from "./read-only.ts";
