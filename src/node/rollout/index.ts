// Which configuration the agent runs with: noted on disk, tried, kept when it works, taken back by itself when it does not.
export { AssignedConfig, type ConfigApi, configMapRefOf, warnOfIdleSource } from "./assigned-config.ts";
export { ConfigKeeper } from "./config-keeper.ts";
export { guardedIo, refuseShared } from "./guarded-io.ts";
export { nodeConfigReport } from "./node-report.ts";
export { keepOldMeta, readOldNotes } from "./old-layout.ts";
export type { RolloutReport, Turn } from "./ports.ts";
export { RolloutStore } from "./store.ts";
export { systemDisk } from "./system-disk.ts";
export { TrialGuard } from "./trial-guard.ts";
export { TrialWatch } from "./trial-watch.ts";
export { runTurns, type TurnOutcome } from "./turns.ts";
export { describeSource, type ReadVersion, readVersion, type VersionSource } from "./version.ts";
export { WatchedFiles } from "./watched-files.ts";
