import { commandHelp } from "./help-text.ts";
import type { Command } from "./io.ts";
import { runOnceDescription } from "./table/machine-commands.ts";

/** The agent reads its own flags; only the help is ours. */
export function runOnceCommand(runOnce: (words: readonly string[]) => Promise<number>): Command {
  return async (words, io) => {
    if (!words.includes("--help") && !words.includes("-h")) return await runOnce(words);
    io.stdout.write(commandHelp(runOnceDescription));
    return 0;
  };
}
