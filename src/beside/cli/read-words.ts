import { parseArgs } from "node:util";
import { parseDuration } from "../../ground/base/index.ts";
import { UsageError } from "./io.ts";
import { closestTo } from "./suggest.ts";
import type { CommandDescription, OptionDescription, OptionTable, OptionValues } from "./table/description.ts";
import { helpOption } from "./table/shared-options.ts";

/** What the user typed after the command's name. */
export interface CommandCall<Options> {
  readonly options: OptionValues<Options>;
  readonly operands: readonly string[];
  /** What was typed after "--", or the flags of the agent where the command takes them. */
  readonly rest: readonly string[];
}

/** Reads the words by the command's description; what it does not know is a UsageError. */
export function readWords<const Description extends CommandDescription>(
  description: Description,
  words: readonly string[],
): CommandCall<Description["options"]> | "help" {
  const table: OptionTable = { ...description.options, ...helpOption };
  const { own, others } = description.takesAgentFlags ? ownWords(table, words) : { own: words, others: [] };
  const given = new Map<string, string[]>();
  const operands: string[] = [];
  const rest: string[] = [...others];
  let isOver = false;
  for (const token of tokensOf(table, own)) {
    if (token.kind === "option-terminator") isOver = true;
    else if (token.kind === "positional") (isOver ? rest : operands).push(token.value);
    else given.set(token.name, [...(given.get(token.name) ?? []), checkedValue(table, token)]);
  }
  if (given.has("help")) return "help";
  checkOperands(description, operands);
  if (rest.length > 0 && description.passesOn === undefined && !description.takesAgentFlags) {
    throw new UsageError(`"nodelet ${description.name}" takes nothing after --, found ${rest[0]?.slice(0, 100)}`);
  }
  if (rest.length === 0 && description.passesOn !== undefined) {
    throw new UsageError(`${description.passesOn} is missing: give it after --`);
  }
  const values = Object.entries(description.options).map(([name, option]) => [
    name,
    optionValue(name, option, given.get(name) ?? []),
  ]);
  return { options: Object.fromEntries(values) as OptionValues<Description["options"]>, operands, rest };
}

interface OptionToken {
  readonly kind: "option";
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function tokensOf(table: OptionTable, words: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(table).map(([name, { type, short }]) => [
      name,
      { type: type === "flag" ? ("boolean" as const) : ("string" as const), ...(short !== undefined && { short }) },
    ]),
  );
  // Not strict: what is wrong is said in our own words, with what may have been meant.
  return parseArgs({ args: [...words], options, strict: false, allowPositionals: true, tokens: true }).tokens;
}

/** The option's text; empty for a flag. */
function checkedValue(table: OptionTable, { name, rawName, value, inlineValue }: OptionToken): string {
  const option = Object.hasOwn(table, name) ? table[name] : undefined;
  if (option === undefined) throw unknownOption(table, rawName);
  if (option.type === "flag") {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value, found "${value}"`);
    return "";
  }
  // A word with a dash is the next option, forgotten values are more usual than values that begin so.
  const isNextOption = inlineValue === false && value !== undefined && /^-./.test(value) && !isAll(option, value);
  if (value === undefined || isNextOption) throw new UsageError(`${rawName} wants a value: ${valueWords(option)}`);
  return value;
}

function isAll(option: OptionDescription, text: string): boolean {
  return option.type === "count" && option.orAll === true && text === "-1";
}

function unknownOption(table: OptionTable, rawName: string): UsageError {
  const names = Object.keys(table).map((name) => `--${name}`);
  const meant = rawName.startsWith("--") ? closestTo(rawName, names) : undefined;
  return new UsageError(
    `there is no option ${rawName.slice(0, 100)}${meant === undefined ? "" : `; did you mean ${meant}?`}`,
  );
}

function checkOperands({ name, operands = [] }: CommandDescription, found: readonly string[]): void {
  const most = operands.some(({ presence }) => presence === "repeated") ? Number.POSITIVE_INFINITY : operands.length;
  if (found.length > most) {
    const wanted = most === 0 ? "no word" : most === 1 ? `one ${operands[0]?.name}` : `${most} words`;
    throw new UsageError(`"nodelet ${name}" takes ${wanted}, found ${found.slice(0, 10).join(" ").slice(0, 200)}`);
  }
  const missing = operands.filter(({ presence }) => presence === "required")[found.length];
  if (missing !== undefined) throw new UsageError(`${missing.name} is missing: ${missing.means}`);
}

function optionValue(name: string, option: OptionDescription, given: readonly string[]): unknown {
  const text = given.at(-1);
  switch (option.type) {
    case "flag":
      return required(name, option, text === undefined ? undefined : true) ?? false;
    case "texts":
      return given;
    case "text":
      return required(name, option, text ?? option.default);
    case "choice":
      if (text === undefined || option.values.includes(text)) return text ?? option.default;
      throw new UsageError(`--${name} wants ${option.values.join(" or ")}, found "${text}"`);
    case "count":
      if (text === undefined || isAll(option, text)) return required(name, option, option.default);
      if (/^\d{1,15}$/.test(text)) return Number(text);
      throw new UsageError(`--${name} wants a whole number, found "${text}"`);
    case "time": {
      const said = text ?? option.default;
      return said === undefined ? required(name, option, undefined) : milliseconds(name, said);
    }
  }
}

function required<Value>(name: string, { isRequired, means }: OptionDescription, value: Value): Value {
  if (value === undefined && isRequired) throw new UsageError(`--${name} is missing: ${means}`);
  return value;
}

function milliseconds(name: string, text: string): number {
  const ms = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : parseDuration(text);
  if (ms !== undefined && Number.isFinite(ms) && ms >= 0) return ms;
  throw new UsageError(`--${name} wants a number of seconds, or a duration such as 5m, found "${text}"`);
}

/** How an option's value is shown. */
export function valueWords(option: OptionDescription): string {
  if (option.type === "flag") return "";
  return option.type === "choice" ? option.values.join("|") : option.value;
}

/** Which words are the command's own, where the others are for the agent. */
function ownWords(table: OptionTable, words: readonly string[]): { own: readonly string[]; others: readonly string[] } {
  const own: string[] = [];
  const others: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    const [name = "", inline] = word.split("=", 2);
    const found = Object.entries(table).find(([long, { short }]) => name === `--${long}` || name === `-${short}`);
    if (found === undefined) {
      others.push(word);
      continue;
    }
    own.push(word);
    const next = words[index + 1];
    if (found[1].type !== "flag" && inline === undefined && next !== undefined) own.push(words[++index] ?? next);
  }
  return { own, others };
}
