// Builds every part of the agent once, connects them, starts and stops them in stages.
export { runDaemon, runOnce } from "./daemon.ts";
