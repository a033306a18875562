import { printAnswer, type WantedOutput } from "./answer.ts";
import { defineCommand } from "./define-command.ts";
import {
  type CollectionAnswer,
  collectionText,
  type DrainAnswer,
  drainText,
  type EvictionAnswer,
  evictionText,
} from "./dry-run-text.ts";
import type { CommandIo } from "./io.ts";
import { askAgent } from "./running-agent.ts";
import { drainDescription, evictDescription, gcDescription } from "./table/node-commands.ts";

/** Which pods would be evicted, in which order and why. */
export const evictCommand = defineCommand(evictDescription, ({ options }, io) =>
  dryRun<EvictionAnswer>("evict", options, { signal: options.signal }, evictionText, io),
);

/** Which images, dead containers, logs and directories of pods would be removed. */
export const gcCommand = defineCommand(gcDescription, ({ options }, io) => {
  const { images, containers, logs, pods, all } = options;
  return dryRun<CollectionAnswer>("gc", options, { images, containers, logs, pods, all }, collectionText, io);
});

/** What emptying the node would do. */
export const drainCommand = defineCommand(drainDescription, ({ options }, io) =>
  dryRun<DrainAnswer>("drain", options, { timeout: options.timeout }, drainText, io),
);

interface DryRunOptions extends WantedOutput {
  readonly "root-dir": string | undefined;
}

/** What programs are told the answer is. */
const dryRunKinds = { evict: "EvictionPlan", gc: "CollectionPlan", drain: "DrainPlan" } as const;

type Asked = string | readonly string[] | boolean | undefined;

async function dryRun<Answer extends object>(
  name: keyof typeof dryRunKinds,
  options: DryRunOptions,
  asked: Readonly<Record<string, Asked>>,
  render: (answer: Answer, now: number) => string,
  io: CommandIo,
): Promise<number> {
  const question = new URLSearchParams();
  for (const [option, said] of Object.entries(asked)) {
    for (const each of [said ?? []].flat()) if (each !== false) question.append(option, String(each));
  }
  const answer = await askAgent(io, options, (agent) => agent.dryRun<Answer>(name, question, io.signal));
  printAnswer(io, options, dryRunKinds[name], answer, () => render(answer, io.clock.now()));
  return 0;
}
