// What people type: commands that talk to a running agent or to this machine, never to the agent's inside.
export type { CommandIo } from "./io.ts";
export type { OtherProcesses } from "./load-command.ts";
export { runCommand } from "./run-command.ts";
export { type ScreenSize, terminalSize } from "./terminal-size.ts";
