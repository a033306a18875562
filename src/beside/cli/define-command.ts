import { isAbort, messageOf } from "../../ground/base/index.ts";
import { commandHelp, usageText } from "./help-text.ts";
import { type Command, type CommandIo, UsageError } from "./io.ts";
import { type CommandCall, readWords } from "./read-words.ts";
import type { CommandDescription } from "./table/description.ts";
import { visible } from "./visible-text.ts";

/**
 * A command by its description and its work: words are read, `--help` is answered, and what the work throws becomes a
 * sentence for the user and an exit code.
 */
export function defineCommand<const Description extends CommandDescription>(
  description: Description,
  work: (call: CommandCall<Description["options"]>, io: CommandIo) => Promise<number>,
): Command {
  const { name } = description;
  return async (words, io) => {
    try {
      const call = readWords(description, words);
      if (call !== "help") return await work(call, io);
      io.stdout.write(commandHelp(description));
      return 0;
    } catch (error) {
      if (isAbort(error, io.signal)) return 130;
      io.stderr.write(`nodelet ${name}: ${visible(messageOf(error))}\n`);
      if (!(error instanceof UsageError)) return 1;
      io.stderr.write(`${usageText(description)}"nodelet help ${name}" says more.\n`);
      return 2;
    }
  };
}
