import { printAnswer, type WantedOutput } from "./answer.ts";
import { defineCommand } from "./define-command.ts";
import type { CommandIo } from "./io.ts";
import { blameText, type LedgerAnswer, whyText } from "./ledger-text.ts";
import { isIn, podRef } from "./pod-ref.ts";
import { askAgent } from "./running-agent.ts";
import { blameDescription, whyDescription } from "./table/pod-commands.ts";
import { waitingText } from "./waiting-text.ts";

/** What is a pod waiting for, since when, what was tried, when is the next try. */
export const whyCommand = defineCommand(whyDescription, async ({ options, operands: [pod] }, io) => {
  if (pod !== undefined) return await showLedger(podRef(pod, options.namespace), options, whyText, io);
  const all = await askAgent(io, options, (client) => client.waiting(io.signal));
  const answer = { ...all, pods: all.pods.filter((each) => isIn(options.namespace, each)) };
  printAnswer(io, options, "WaitingList", answer, () => waitingText(answer));
  return 0;
});

/** Where the time of a pod's start went. */
export const blameCommand = defineCommand(blameDescription, ({ options, operands: [pod = ""] }, io) =>
  showLedger(podRef(pod, options.namespace), options, blameText, io),
);

async function showLedger(
  pod: string,
  options: WantedOutput & { readonly "root-dir": string | undefined },
  render: (answer: LedgerAnswer) => string,
  io: CommandIo,
): Promise<number> {
  const answer = await askAgent(io, options, (client) => client.ledger(pod, io.signal));
  printAnswer(io, options, "PodLedger", answer, () => render(answer));
  return 0;
}
