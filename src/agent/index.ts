// Builds every part of the agent once, connects them, starts and stops them in stages.
export { runDaemon } from "./daemon.ts";
export { runOnce } from "./run-once.ts";
