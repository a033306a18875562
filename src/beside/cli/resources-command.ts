import { printAnswer } from "./answer.ts";
import { defineCommand } from "./define-command.ts";
import { resourcesText } from "./resources-text.ts";
import { askAgent } from "./running-agent.ts";
import { resourcesDescription } from "./table/node-commands.ts";

/** Who has which CPUs, memory and devices of this machine. */
export const resourcesCommand = defineCommand(resourcesDescription, async ({ options }, io) => {
  const answer = await askAgent(io, options, (client) => client.resources(io.signal));
  printAnswer(io, options, "Resources", answer, () => resourcesText(answer));
  return 0;
});
