import { printAnswer } from "./answer.ts";
import { defineCommand } from "./define-command.ts";
import { isIn } from "./pod-ref.ts";
import { askAgent } from "./running-agent.ts";
import { topDescription } from "./table/pod-commands.ts";
import { topText, usageBetween } from "./top-text.ts";

const measuredMs = 1000;

/** How much the node and its pods use. */
export const topCommand = defineCommand(topDescription, async ({ options }, io) => {
  const { clock, signal } = io;
  const answer = await askAgent(io, options, async (client) => {
    const before = await client.usage(signal);
    const from = clock.monotonic();
    await clock.sleep(measuredMs, signal);
    const after = await client.usage(signal);
    const { pods, ...node } = usageBetween(before, after, clock.monotonic() - from, options.sort);
    return { ...node, pods: pods.filter((pod) => isIn(options.namespace, pod)) };
  });
  printAnswer(io, options, "Usage", answer, () => topText(answer, options.containers));
  return 0;
});
