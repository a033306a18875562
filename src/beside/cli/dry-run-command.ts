import { pathFrom, readOptions, reportingErrors } from "./command.ts";
import {
  type CollectionAnswer,
  collectionText,
  type DrainAnswer,
  drainText,
  type EvictionAnswer,
  evictionText,
} from "./dry-run-text.ts";
import { type Command, UsageError } from "./io.ts";
import { askAgent, rootDirUsage } from "./running-agent.ts";

/** Which pods would be evicted, in which order and why. */
export const evictCommand: Command = dryRunCommand<EvictionAnswer>({
  name: "evict",
  purpose: "Says which pods the node would evict, in which order and why. The node decides by itself when to do so.",
  option: {
    name: "signal",
    words: "SIGNAL=AMOUNT",
    means: "what if so much were available, such as memory.available=400Mi; may be given several times",
  },
  render: evictionText,
});

/** Which images and dead containers would be removed. */
export const gcCommand: Command = dryRunCommand<CollectionAnswer>({
  name: "gc",
  purpose: "Says which images and dead containers the node would remove, and who keeps the others.",
  option: { name: "all", words: "", means: "as under disk pressure: everything that nobody uses" },
  render: collectionText,
});

/** What emptying the node would do. */
export const drainCommand: Command = dryRunCommand<DrainAnswer>({
  name: "drain",
  purpose: "Says what emptying this node would do. To do it: kubectl drain.",
  option: { name: "timeout", words: "DURATION", means: "which pods may take longer than this, such as 5m" },
  render: drainText,
});

interface DryRunDescription<Answer> {
  readonly name: string;
  readonly purpose: string;
  /** `words` is what it takes; empty: nothing. */
  readonly option: { readonly name: string; readonly words: string; readonly means: string };
  readonly render: (answer: Answer, now: number) => string;
}

function dryRunCommand<Answer>({ name, purpose, option, render }: DryRunDescription<Answer>): Command {
  const optionWords = `--${option.name}${option.words === "" ? "" : ` ${option.words}`}`;
  const usage = `usage: nodelet ${name} --dry-run [${optionWords}] [--json] [--root-dir DIR]
${purpose}
  ${optionWords.padEnd(16)} ${option.means}
  --json           the answer as the agent gives it
${rootDirUsage}`;
  return (args, io) =>
    reportingErrors(name, usage, io, async () => {
      const values: Readonly<Record<string, unknown>> = readOptions(args, {
        "dry-run": { type: "boolean" },
        json: { type: "boolean" },
        "root-dir": { type: "string" },
        help: { type: "boolean", short: "h" },
        [option.name]: option.words === "" ? { type: "boolean" } : { type: "string", multiple: true },
      });
      if (values["help"] === true) {
        io.stdout.write(usage);
        return 0;
      }
      if (values["dry-run"] !== true)
        throw new UsageError("only with --dry-run: what really happens, the node decides");
      const question = new URLSearchParams();
      for (const said of [values[option.name] ?? []].flat()) question.append(option.name, String(said));
      const given = values["root-dir"];
      const rootDir = typeof given === "string" ? pathFrom(io, given) : undefined;
      const answer = await askAgent(rootDir, (agent) => agent.dryRun<Answer>(name, question, io.signal));
      io.stdout.write(
        values["json"] === true ? `${JSON.stringify(answer, undefined, 2)}\n` : render(answer, io.clock.now()),
      );
      return 0;
    });
}
