import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { hasCode, messageOf } from "../../ground/base/index.ts";
import { defaultStateDir, pathFrom, reportingErrors } from "./command.ts";
import { type Command, type CommandIo, UsageError } from "./io.ts";
import { blameText, type LedgerAnswer, whyText } from "./ledger-text.ts";
import { LocalClient } from "./local-client.ts";
import { layoutOf } from "./machine/index.ts";

const kubeletRoot = "/var/lib/kubelet";

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
  --root-dir DIR   the agent's root directory (default: that of "nodelet up" if it runs, else ${kubeletRoot})
`;
  return (args, io) =>
    reportingErrors(name, usage, io, async () => {
      const { pod, rootDir, help } = readArgs(args, io);
      if (help) {
        io.stdout.write(usage);
        return 0;
      }
      if (pod === undefined) throw new UsageError("which pod? Give its name");
      const answer = await new LocalClient(join(rootDir, "nodelet.sock"))
        .ledger(pod, io.signal)
        .catch((error: unknown) => {
          throw isNotThere(error)
            ? new Error(
                `no agent answers at ${join(rootDir, "nodelet.sock")}; is it running? Give its --root-dir if it is another`,
              )
            : error;
        });
      io.stdout.write(render(answer));
      return 0;
    });
}

function readArgs(args: readonly string[], io: CommandIo): { pod: string | undefined; rootDir: string; help: boolean } {
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
      rootDir: given === undefined ? defaultRoot() : pathFrom(io, given),
      help: values.help,
    };
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(messageOf(error), { cause: error });
  }
}

function defaultRoot(): string {
  const { agentRoot } = layoutOf(defaultStateDir);
  return existsSync(join(agentRoot, "nodelet.sock")) ? agentRoot : kubeletRoot;
}

function isNotThere(error: unknown): boolean {
  return hasCode(error, "ENOENT", "ECONNREFUSED");
}
