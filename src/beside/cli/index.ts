// What people type: commands that talk to a running agent or to this machine, never to the agent's inside.
export { configCommand } from "./config-command.ts";
export { downCommand } from "./down.ts";
export { drainCommand, evictCommand, gcCommand } from "./dry-run-command.ts";
export { helpCommand, unknownCommand } from "./help-command.ts";
export type { Command, CommandIo } from "./io.ts";
export { blameCommand, whyCommand } from "./ledger-command.ts";
export { LocalClient } from "./local-client.ts";
export { resourcesCommand } from "./resources-command.ts";
export { shutdownCommand } from "./shutdown-command.ts";
export { upCommand } from "./up.ts";
export { versionCommand } from "./version-command.ts";
