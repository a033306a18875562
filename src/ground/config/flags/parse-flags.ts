import { goQuote } from "../../base/index.ts";
import type { ConfigProblem } from "../agent-config.ts";
import { TextError } from "../text/go-text.ts";
import { hint } from "../text/nearest.ts";
import { type Flag, flagTable } from "./flag-table.ts";
import { removedFlags } from "./removed-flags.ts";

/** The command line once read. */
export interface ParsedFlags {
  /** What each given flag came to; a flag that was given but asks for nothing is there with undefined. */
  readonly values: ReadonlyMap<string, unknown>;
  readonly positional: readonly string[];
  readonly problems: readonly ConfigProblem[];
  /** "Flag --x has been deprecated, …", once for each such flag. */
  readonly deprecations: readonly string[];
}

/** Reads argv as pflag does: `--flag=value`, `--flag value`, bare booleans, `-v 2`, `-v=2`, `-v2`, `--` ends flags. */
export function parseFlags(argv: readonly string[]): ParsedFlags {
  const values = new Map<string, unknown>();
  const positional: string[] = [];
  const problems: ConfigProblem[] = [];
  const deprecations = new Set<string>();
  const rest = [...argv];

  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === "--") positional.push(...rest.splice(0));
    else if (arg.startsWith("--")) parseLong(arg);
    else if (arg.startsWith("-") && arg !== "-") parseShort(arg.slice(1));
    else positional.push(arg);
  }
  return { values, positional, problems, deprecations: [...deprecations] };

  function parseLong(arg: string): void {
    const body = arg.slice(2);
    if (/^[-=]/.test(body)) {
      problems.push({ message: `bad flag syntax: ${arg}` });
      return;
    }
    const equals = body.indexOf("=");
    const given = equals < 0 ? body : body.slice(0, equals);
    const name = given.replaceAll("_", "-");
    const flag = flagTable.get(name);
    if (flag === undefined) {
      problems.push({ message: unknownFlag(given, name), field: `--${name}` });
      // Most likely its value; taking it along keeps one mistake from being reported as two.
      if (equals < 0 && rest[0]?.startsWith("-") === false) rest.shift();
    } else if (equals >= 0) setFlag(flag, body.slice(equals + 1));
    else if (flag.kind.bare !== undefined) setFlag(flag, flag.kind.bare);
    else setNext(flag, `flag needs an argument: ${arg}`);
  }

  function parseShort(letters: string): void {
    const [letter = ""] = letters;
    const after = letters.slice(letter.length);
    const flag = [...flagTable.values()].find(({ shorthand }) => shorthand === letter);
    if (flag === undefined) problems.push({ message: `unknown shorthand flag: '${letter}' in -${letters}` });
    else if (after.startsWith("=") && after.length > 1) setFlag(flag, after.slice(1));
    else if (flag.kind.bare !== undefined) {
      setFlag(flag, flag.kind.bare);
      if (after !== "") parseShort(after);
    } else if (after !== "") setFlag(flag, after);
    else setNext(flag, `flag needs an argument: '${letter}' in -${letters}`);
  }

  function setNext(flag: Flag, complaint: string): void {
    const value = rest.shift();
    if (value === undefined) problems.push({ message: complaint, field: `--${flag.name}` });
    else setFlag(flag, value);
  }

  function setFlag(flag: Flag, text: string): void {
    try {
      values.set(flag.name, flag.kind.set(values.get(flag.name), text));
    } catch (error) {
      if (!(error instanceof TextError)) throw error;
      const spelled = flag.shorthand === undefined ? `--${flag.name}` : `-${flag.shorthand}, --${flag.name}`;
      problems.push({
        message: `invalid argument ${goQuote(text)} for ${goQuote(spelled)} flag: ${error.message}`,
        field: `--${flag.name}`,
      });
      return;
    }
    if (flag.deprecated !== undefined) {
      deprecations.add(`Flag --${flag.name} has been deprecated, ${flag.deprecated}`);
    }
  }
}

function unknownFlag(given: string, name: string): string {
  const removed = Object.hasOwn(removedFlags, name) ? removedFlags[name] : undefined;
  if (removed !== undefined) return `unknown flag: --${given}: ${removed}`;
  return `unknown flag: --${given}${hint(name, flagTable.keys(), "--")}`;
}
