import { pathFrom, readOptions, reportingErrors } from "./command.ts";
import { type Command, UsageError } from "./io.ts";
import { resourcesText } from "./resources-text.ts";
import { askAgent, rootDirUsage } from "./running-agent.ts";

const usage = `usage: nodelet resources [-o text|json] [--root-dir DIR]
Says which CPUs and which memory every NUMA node of this machine has and which devices its plugins offer, who has them
alone, and why; and which resource claims pods use.
  -o, --output     text for people (default), or json
${rootDirUsage}`;

/** Who has which CPUs, memory and devices of this machine. */
export const resourcesCommand: Command = (args, io) =>
  reportingErrors("resources", usage, io, async () => {
    const options = readOptions(args, {
      output: { type: "string", short: "o", default: "text" },
      "root-dir": { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    });
    if (options.help) {
      io.stdout.write(usage);
      return 0;
    }
    const { output } = options;
    if (output !== "text" && output !== "json") throw new UsageError(`--output is "${output}"; give text or json`);
    const given = options["root-dir"];
    const rootDir = given === undefined ? undefined : pathFrom(io, given);
    const answer = await askAgent(rootDir, (client) => client.resources(io.signal));
    io.stdout.write(output === "json" ? `${JSON.stringify(answer, null, 2)}\n` : resourcesText(answer));
    return 0;
  });
