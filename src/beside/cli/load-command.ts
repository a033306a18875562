import type { ApiServerOptions } from "./api-server-command.ts";
import type { DockershimFlags } from "./dockershim-command.ts";
import type { Command } from "./io.ts";
import type { CommandName } from "./table/commands.ts";

/** What is started from here, but is none of the commands' code. */
export interface OtherProcesses {
  readonly apiServer: (options: ApiServerOptions) => Promise<number>;
  readonly dockershim: (flags: DockershimFlags) => Promise<number>;
  readonly runOnce: (words: readonly string[]) => Promise<number>;
}

/** How each command is loaded, which happens when it is called: none pays for another. */
export const loadCommand: {
  readonly [Name in CommandName]: (processes: OtherProcesses) => Promise<Command>;
} = {
  pods: async () => (await import("./pods-command.ts")).podsCommand,
  why: async () => (await import("./ledger-command.ts")).whyCommand,
  blame: async () => (await import("./ledger-command.ts")).blameCommand,
  logs: async () => (await import("./logs-command.ts")).logsCommand,
  exec: async () => (await import("./exec-command.ts")).execCommand,
  top: async () => (await import("./top-command.ts")).topCommand,
  apply: async () => (await import("./apply-command.ts")).applyCommand,
  doctor: async () => (await import("./doctor-command.ts")).doctorCommand,
  dashboard: async () => (await import("./dashboard-command.ts")).dashboardCommand,
  resources: async () => (await import("./resources-command.ts")).resourcesCommand,
  evict: async () => (await import("./dry-run-command.ts")).evictCommand,
  gc: async () => (await import("./dry-run-command.ts")).gcCommand,
  drain: async () => (await import("./dry-run-command.ts")).drainCommand,
  shutdown: async () => (await import("./shutdown-command.ts")).shutdownCommand,
  up: async () => (await import("./up.ts")).upCommand,
  down: async () => (await import("./down.ts")).downCommand,
  "api-server": async ({ apiServer }) => (await import("./api-server-command.ts")).apiServerCommand(apiServer),
  dockershim: async ({ dockershim }) => (await import("./dockershim-command.ts")).dockershimCommand(dockershim),
  "run-once": async ({ runOnce }) => (await import("./run-once-command.ts")).runOnceCommand(runOnce),
  config: async () => (await import("./config-command.ts")).configCommand,
  "config diff": async () => (await import("./config-trial-command.ts")).configDiffCommand,
  "config try": async () => (await import("./config-trial-command.ts")).configTryCommand,
  "config keep": async () => (await import("./config-trial-command.ts")).configKeepCommand,
  "config back": async () => (await import("./config-trial-command.ts")).configBackCommand,
  "config history": async () => (await import("./config-trial-command.ts")).configHistoryCommand,
  completion: async () => (await import("./completion-command.ts")).completionCommand,
  __complete: async () => (await import("./completion-command.ts")).completeCommand,
  man: async () => (await import("./man-command.ts")).manCommand,
  version: async () => (await import("./version-command.ts")).versionCommand,
  help: async () => (await import("./help-command.ts")).helpCommand,
};
