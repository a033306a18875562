import { printAnswer } from "./answer.ts";
import { defineCommand } from "./define-command.ts";
import { askAgent } from "./running-agent.ts";
import { shutdownText } from "./shutdown-text.ts";
import { shutdownDescription } from "./table/node-commands.ts";

/** What would happen if the machine were turned off. */
export const shutdownCommand = defineCommand(shutdownDescription, async ({ options }, io) => {
  const plan = await askAgent(io, options, (client) => client.shutdownPlan(io.signal));
  printAnswer(io, options, "ShutdownPlan", { isConfigured: plan !== undefined, ...plan }, () => shutdownText(plan));
  return 0;
});
