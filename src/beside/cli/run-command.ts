import { unknownCommand } from "./help-command.ts";
import type { CommandIo } from "./io.ts";
import { loadCommand, type OtherProcesses } from "./load-command.ts";
import { findCommand } from "./table/commands.ts";

/** Runs the command that the words name; the result is the exit code. */
export async function runCommand(words: readonly string[], io: CommandIo, processes: OtherProcesses): Promise<number> {
  const found = findCommand(words);
  if (found === undefined) return unknownCommand(wordsOfName(words), io);
  const command = await loadCommand[found.name](processes);
  return await command(found.rest, io);
}

/** Two where the first alone would be a command. */
function wordsOfName([first = "", second = ""]: readonly string[]): string {
  return findCommand([first]) === undefined ? first : `${first} ${second}`;
}
