import { machineAt, requireRoot } from "./command.ts";
import { defineCommand } from "./define-command.ts";
import { removeMachine } from "./machine/index.ts";
import { downDescription } from "./table/machine-commands.ts";

export const downCommand = defineCommand(downDescription, async ({ options }, io) => {
  const layout = await machineAt(io, options["state-dir"]);
  requireRoot();
  const report = (step: string): void => void io.stderr.write(`nodelet: ${step}\n`);
  const found = await removeMachine(layout, { graceMs: options.grace, report }, io.clock);
  io.stdout.write(
    found ? "Everything is removed.\n" : `Nothing to remove: there is no machine at ${layout.stateDir}.\n`,
  );
  return 0;
});
