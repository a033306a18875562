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
  options: [
    {
      name: "signal",
      words: "SIGNAL=AMOUNT",
      means: "what if so much were available, such as memory.available=400Mi; may be given several times",
    },
  ],
  render: evictionText,
});

/** Which images, dead containers, logs and directories of pods would be removed. */
export const gcCommand: Command = dryRunCommand<CollectionAnswer>({
  name: "gc",
  purpose:
    "Says what the node would remove that nobody uses, and who keeps the other images. Without a part: all parts.",
  options: [
    { name: "images", words: "", means: "images" },
    { name: "containers", words: "", means: "dead containers and sandboxes" },
    { name: "logs", words: "", means: "logs of pods that are gone" },
    { name: "pods", words: "", means: "directories of pods that are gone" },
    { name: "all", words: "", means: "as under disk pressure: everything that nobody uses" },
  ],
  render: collectionText,
});

/** What emptying the node would do. */
export const drainCommand: Command = dryRunCommand<DrainAnswer>({
  name: "drain",
  purpose: "Says what emptying this node would do. To do it: kubectl drain.",
  options: [{ name: "timeout", words: "DURATION", means: "which pods may take longer than this, such as 5m" }],
  render: drainText,
});

interface DryRunDescription<Answer> {
  readonly name: string;
  readonly purpose: string;
  /** `words` is what it takes; empty: nothing. */
  readonly options: readonly { readonly name: string; readonly words: string; readonly means: string }[];
  readonly render: (answer: Answer, now: number) => string;
}

function dryRunCommand<Answer>({ name, purpose, options, render }: DryRunDescription<Answer>): Command {
  const shown = options.map(({ name: option, words, means }) => ({
    words: `--${option}${words === "" ? "" : ` ${words}`}`,
    means,
  }));
  const usage = `usage: nodelet ${name} --dry-run ${shown.map(({ words }) => `[${words}]`).join(" ")} [--json] [--root-dir DIR]
${purpose}
${shown.map(({ words, means }) => `  ${words.padEnd(16)} ${means}`).join("\n")}
  --json           the answer as the agent gives it
${rootDirUsage}`;
  return (args, io) =>
    reportingErrors(name, usage, io, async () => {
      const values: Readonly<Record<string, unknown>> = readOptions(args, {
        "dry-run": { type: "boolean" },
        json: { type: "boolean" },
        "root-dir": { type: "string" },
        help: { type: "boolean", short: "h" },
        ...Object.fromEntries(
          options.map(({ name: option, words }) => [
            option,
            words === "" ? ({ type: "boolean" } as const) : ({ type: "string", multiple: true } as const),
          ]),
        ),
      });
      if (values["help"] === true) {
        io.stdout.write(usage);
        return 0;
      }
      if (values["dry-run"] !== true)
        throw new UsageError("only with --dry-run: what really happens, the node decides");
      const question = new URLSearchParams();
      for (const { name: option } of options) {
        for (const said of [values[option] ?? []].flat()) question.append(option, String(said));
      }
      const given = values["root-dir"];
      const rootDir = typeof given === "string" ? pathFrom(io, given) : undefined;
      const answer = await askAgent(rootDir, (agent) => agent.dryRun<Answer>(name, question, io.signal));
      io.stdout.write(
        values["json"] === true ? `${JSON.stringify(answer, undefined, 2)}\n` : render(answer, io.clock.now()),
      );
      return 0;
    });
}
