// Builds every part of the agent once, connects them, starts and stops them in stages.
export type { OtherFigures } from "../node/server/index.ts";
export { runDaemon } from "./daemon.ts";
export { exitDespiteThreads } from "./exit-despite-threads.ts";
export { runOnce } from "./run-once.ts";
