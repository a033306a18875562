import { applyDescription } from "./apply-command.ts";
import {
  configBackDescription,
  configDiffDescription,
  configHistoryDescription,
  configKeepDescription,
  configTryDescription,
} from "./config-commands.ts";
import type { CommandDescription } from "./description.ts";
import {
  apiServerDescription,
  dockershimDescription,
  downDescription,
  runOnceDescription,
  upDescription,
} from "./machine-commands.ts";
import {
  dashboardDescription,
  doctorDescription,
  drainDescription,
  evictDescription,
  gcDescription,
  resourcesDescription,
  shutdownDescription,
} from "./node-commands.ts";
import {
  completeDescription,
  completionDescription,
  configDescription,
  helpDescription,
  manDescription,
  versionDescription,
} from "./nodelet-commands.ts";
import {
  blameDescription,
  execDescription,
  logsDescription,
  podsDescription,
  topDescription,
  whyDescription,
} from "./pod-commands.ts";

/**
 * All commands: dispatch, help, suggestions, completion and the manual are made from it. A new command is a description
 * in this folder, its name here and in `load-command.ts`, and a file that calls defineCommand with that description.
 */
export const commandTable = [
  podsDescription,
  whyDescription,
  blameDescription,
  logsDescription,
  execDescription,
  topDescription,
  applyDescription,
  doctorDescription,
  dashboardDescription,
  resourcesDescription,
  evictDescription,
  gcDescription,
  drainDescription,
  shutdownDescription,
  upDescription,
  downDescription,
  apiServerDescription,
  dockershimDescription,
  runOnceDescription,
  configDescription,
  configDiffDescription,
  configTryDescription,
  configKeepDescription,
  configBackDescription,
  configHistoryDescription,
  completionDescription,
  completeDescription,
  manDescription,
  versionDescription,
  helpDescription,
] as const satisfies readonly CommandDescription[];

export type CommandName = (typeof commandTable)[number]["name"];

/** The commands that people are told of. */
export const shownCommands: readonly CommandDescription[] = commandTable.filter(
  (command: CommandDescription) => command.isHidden !== true,
);

export interface FoundCommand {
  readonly name: CommandName;
  readonly description: CommandDescription;
  /** The words that are left for it. */
  readonly rest: readonly string[];
}

/** The command that the first words name. */
export function findCommand(words: readonly string[]): FoundCommand | undefined {
  // A command below another one first: "config diff" before "config".
  for (const length of [2, 1]) {
    const typed = words.slice(0, length).join(" ");
    const description = commandTable.find(({ name }) => name === typed);
    if (description !== undefined && words.length >= length) {
      if (isMeantBelow(description, words[length])) return undefined;
      return { name: description.name, description, rest: words.slice(length) };
    }
  }
  return undefined;
}

/** "config dif": a command that takes no word, and has others below it, was not what the word is for. */
function isMeantBelow({ name, operands = [] }: CommandDescription, word: string | undefined): boolean {
  if (word === undefined || word.startsWith("-") || operands.length > 0) return false;
  return commandTable.some((other) => other.name.startsWith(`${name} `));
}
