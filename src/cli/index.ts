// What people type: commands that talk to a running agent or to this machine, never to the agent's inside.
export { downCommand } from "./down.ts";
export type { Command, CommandIo } from "./io.ts";
export { LocalClient } from "./local-client.ts";
export { upCommand } from "./up.ts";
