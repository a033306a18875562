import { parseArgs } from "node:util";
import { messageOf } from "../../ground/base/index.ts";
import { pathFrom, reportingErrors } from "./command.ts";
import { type Command, type CommandIo, UsageError } from "./io.ts";
import { blameText, type LedgerAnswer, whyText } from "./ledger-text.ts";
import { askAgent, rootDirUsage } from "./running-agent.ts";

/** What is a pod waiting for, since when, what was tried, when is the next try. */
export const whyCommand: Command = ledgerCommand(
  "why",
  "Says what a pod is waiting for and what happened to it so far.",
  whyText,
);

/** Where the time of a pod's start went. */
export const blameCommand: Command = ledgerCommand("blame", "Says where the time of a pod's start went.", blameText);

function ledgerCommand(name: string, purpose: string, render: (answer: LedgerAnswer) => string): Command {
  const usage = `usage: nodelet ${name} POD [--root-dir DIR]
${purpose}
  POD              name, namespace/name or uid
${rootDirUsage}`;
  return (args, io) =>
    reportingErrors(name, usage, io, async () => {
      const { pod, given, help } = readArgs(args, io);
      if (help) {
        io.stdout.write(usage);
        return 0;
      }
      if (pod === undefined) throw new UsageError("which pod? Give its name");
      const answer = await askAgent(given, (client) => client.ledger(pod, io.signal));
      io.stdout.write(render(answer));
      return 0;
    });
}

interface LedgerArgs {
  readonly pod: string | undefined;
  /** The root directory, where one is given. */
  readonly given: string | undefined;
  readonly help: boolean;
}

function readArgs(args: readonly string[], io: CommandIo): LedgerArgs {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { "root-dir": { type: "string" }, help: { type: "boolean", short: "h", default: false } },
      allowPositionals: true,
    });
    if (positionals.length > 1) throw new UsageError(`one pod at a time, found ${positionals.join(" ")}`);
    const given = values["root-dir"];
    return {
      pod: positionals[0],
      given: given === undefined ? undefined : pathFrom(io, given),
      help: values.help,
    };
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(messageOf(error), { cause: error });
  }
}
