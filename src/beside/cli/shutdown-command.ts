import { pathFrom, readOptions, reportingErrors } from "./command.ts";
import { type Command, UsageError } from "./io.ts";
import { askAgent, rootDirUsage } from "./running-agent.ts";
import { shutdownText } from "./shutdown-text.ts";

const usage = `usage: nodelet shutdown --dry-run [--root-dir DIR]
Says what would happen to the pods if this machine were turned off now: in which order they end, and how long each has.
It turns nothing off; that is for "systemctl poweroff" and "systemctl reboot".
  --dry-run        required
${rootDirUsage}`;

/** What would happen if the machine were turned off. */
export const shutdownCommand: Command = (args, io) =>
  reportingErrors("shutdown", usage, io, async () => {
    const options = readOptions(args, {
      "dry-run": { type: "boolean", default: false },
      "root-dir": { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    });
    if (options.help) {
      io.stdout.write(usage);
      return 0;
    }
    if (!options["dry-run"]) throw new UsageError("it only says what would happen; give --dry-run");
    const given = options["root-dir"];
    const rootDir = given === undefined ? undefined : pathFrom(io, given);
    io.stdout.write(shutdownText(await askAgent(rootDir, (client) => client.shutdownPlan(io.signal))));
    return 0;
  });
