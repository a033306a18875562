// What people type: commands that talk to a running agent or to this machine, never to the agent's inside.
export { downCommand } from "./down.ts";
export { type Command, type CommandIo, type TextSink, UsageError } from "./io.ts";
export { AgentAnswerError, LocalClient, type PodChange } from "./local-client.ts";
export { upCommand } from "./up.ts";
