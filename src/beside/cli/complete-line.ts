import { findCommand, shownCommands } from "./table/commands.ts";
import type { CommandDescription, Completion, OptionDescription } from "./table/description.ts";

/** How a line may go on: words with what they mean, or "directories" where the shell knows better. */
export type Possibilities = readonly Possibility[] | "directories";

export interface Possibility {
  readonly word: string;
  readonly means?: string;
}

/** What only the running agent knows. */
export interface CompletionSource {
  pods(rootDir: string | undefined): Promise<readonly string[]>;
  containers(pod: string, rootDir: string | undefined): Promise<readonly string[]>;
}

/** What may stand for the last of the words, which are those after "nodelet". */
export async function completeLine(words: readonly string[], source: CompletionSource): Promise<Possibilities> {
  const current = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const found = findCommand(before);
  if (found === undefined) return before.length === 0 ? matching(commandWords([]), current) : [];
  const below = matching(commandWords(before), current);
  if (below.length > 0) return below;
  const { description } = found;
  const typed = new TypedWords(description, found.rest);
  if (typed.isPassedOn) return [];
  const ask = (completes: Completion | undefined): Promise<Possibilities> => offered(completes, typed, source);
  if (typed.open !== undefined) return filtered(await ask(completionOf(typed.open)), current);
  const [, name = "", start] = /^--([\w-]+)=(.*)$/s.exec(current) ?? [];
  if (start !== undefined) {
    const option = description.options[name];
    const values = option === undefined ? [] : filtered(await ask(completionOf(option)), start);
    return values === "directories" ? values : values.map(({ word }) => ({ word: `--${name}=${word}` }));
  }
  if (current.startsWith("-")) return matching(optionsOf(description), current);
  return filtered(await ask(operandAt(description, typed.operands.length)?.completes), current);
}

/** What the words of a command come to, as far as they are typed. */
class TypedWords {
  readonly operands: string[] = [];
  /** The option whose value comes next. */
  readonly open: OptionDescription | undefined;
  readonly isPassedOn: boolean;
  readonly #values = new Map<string, string>();

  constructor({ options }: CommandDescription, words: readonly string[]) {
    let open: [name: string, option: OptionDescription] | undefined;
    for (const word of words) {
      if (open !== undefined) {
        this.#values.set(open[0], word);
        open = undefined;
        continue;
      }
      const [, name = "", value] = /^--([\w-]+)(?:=(.*))?$/s.exec(word) ?? [];
      const long = Object.hasOwn(options, name) ? options[name] : undefined;
      const short = Object.entries(options).find(([, option]) => word === `-${option.short}`);
      if (value !== undefined) this.#values.set(name, value);
      else if (long !== undefined && long.type !== "flag") open = [name, long];
      else if (short !== undefined && short[1].type !== "flag") open = short;
      else if (!word.startsWith("-")) this.operands.push(word);
    }
    this.open = open?.[1];
    this.isPassedOn = words.includes("--");
  }

  get rootDir(): string | undefined {
    return this.#values.get("root-dir");
  }
}

function commandWords(before: readonly string[]): readonly Possibility[] {
  return shownCommands.flatMap(({ name, summary }) => {
    const words = name.split(" ");
    const isBelow = words.length === before.length + 1 && before.every((word, index) => words[index] === word);
    return isBelow ? [{ word: words.at(-1) ?? "", means: summary }] : [];
  });
}

function optionsOf({ options }: CommandDescription): readonly Possibility[] {
  const help = { word: "--help", means: "say how the command is used" };
  return [...Object.entries(options).map(([name, { means }]) => ({ word: `--${name}`, means })), help];
}

function operandAt({ operands = [] }: CommandDescription, index: number) {
  const last = operands.at(-1);
  return operands[index] ?? (last?.presence === "repeated" ? last : undefined);
}

function completionOf(option: OptionDescription): Completion | undefined {
  if (option.type === "choice") return option.values;
  return option.type === "flag" ? undefined : option.completes;
}

async function offered(
  completes: Completion | undefined,
  typed: TypedWords,
  source: CompletionSource,
): Promise<Possibilities> {
  switch (completes) {
    case undefined:
      return [];
    case "directory":
      return "directories";
    case "command":
      return commandWords(typed.operands);
    case "pod":
      return wordsOf(await source.pods(typed.rootDir));
    case "container":
      return typed.operands[0] === undefined ? [] : wordsOf(await source.containers(typed.operands[0], typed.rootDir));
    default:
      return wordsOf(completes);
  }
}

/** A shell takes apart what it is given; names that are more than names are left out. */
function wordsOf(words: readonly string[]): readonly Possibility[] {
  return words.filter((word) => /^[\w./-]{1,300}$/.test(word)).map((word) => ({ word }));
}

function filtered(found: Possibilities, start: string): Possibilities {
  return found === "directories" ? found : matching(found, start);
}

function matching(found: readonly Possibility[], start: string): readonly Possibility[] {
  return found.filter(({ word }) => word.startsWith(start));
}
