import { defineCommand } from "./define-command.ts";
import { commandHelp, overviewText } from "./help-text.ts";
import type { CommandIo } from "./io.ts";
import { closestTo } from "./suggest.ts";
import { findCommand, shownCommands } from "./table/commands.ts";
import { helpDescription } from "./table/nodelet-commands.ts";
import { visibleLine } from "./visible-text.ts";

export const helpCommand = defineCommand(helpDescription, async ({ operands }, io) => {
  if (operands.length === 0) {
    io.stdout.write(overviewText(shownCommands));
    return 0;
  }
  const found = findCommand(operands);
  if (found === undefined || found.rest.length > 0) return unknownCommand(operands.join(" "), io);
  io.stdout.write(commandHelp(found.description));
  return 0;
});

/** Says that there is no such command, and which one may have been meant. As the kubelet, it ends with 1. */
export function unknownCommand(name: string, io: Pick<CommandIo, "stderr">): number {
  const meant = closestTo(
    name,
    shownCommands.map((command) => command.name),
  );
  const hint = meant === undefined ? "" : `; did you mean "nodelet ${meant}"?`;
  io.stderr.write(
    `nodelet: unknown command ${visibleLine(name.slice(0, 100))}${hint}\n"nodelet help" lists the commands.\n`,
  );
  return 1;
}
