import { defaultStateDir, machineAt, readOptions, reportingErrors, requireRoot, seconds } from "./command.ts";
import type { Command } from "./io.ts";
import { removeMachine } from "./machine/index.ts";

const usage = `usage: nodelet down [--state-dir DIR] [--grace SECONDS]
Stops the agent and removes its pods and its containerd without a trace. Safe to repeat, and after crashes.
  --state-dir DIR   the directory given to "nodelet up" (default ${defaultStateDir})
  --grace SECONDS   how long containers may take to end by themselves (default 5)
`;

export const downCommand: Command = (args, io) =>
  reportingErrors("down", usage, io, async () => {
    const options = readOptions(args, {
      "state-dir": { type: "string", default: defaultStateDir },
      grace: { type: "string", default: "5" },
      help: { type: "boolean", short: "h", default: false },
    });
    if (options.help) {
      io.stdout.write(usage);
      return 0;
    }
    const graceMs = seconds("grace", options.grace);
    const layout = await machineAt(io, options["state-dir"]);
    requireRoot();
    const report = (step: string): void => void io.stderr.write(`nodelet: ${step}\n`);
    const found = await removeMachine(layout, { graceMs, report }, io.clock);
    io.stdout.write(
      found ? "Everything is removed.\n" : `Nothing to remove: there is no machine at ${layout.stateDir}.\n`,
    );
    return 0;
  });
