/**
 * How much values from elsewhere (annotations, config maps, other variables) may add to the texts of one container. The kernel starts no program with more than
 * 6 MiB of arguments and environment, so what is beyond could never run; but a few variables that repeat each other
 * can grow without end before anybody tries.
 */
const longestExpansion = 8 * 1024 * 1024;

/**
 * How many references the texts of one container may have, known or not. Each takes about a microsecond of the event
 * loop that all pods share, so this many take some 20 ms; no container that people write has a thousand.
 */
const mostReferences = 20_000;

/** Thrown where variables would fill the memory of the node, or hold it up. */
export class ExpansionTooLongError extends Error {
  override readonly name = "ExpansionTooLongError";
}

/** What is left of the space and the references that the texts of a container may take together. */
export class ExpansionBudget {
  #length = longestExpansion;
  #references = mostReferences;

  /** Throws when there are too many references. */
  refer(): void {
    this.#references--;
    if (this.#references >= 0) return;
    throw new ExpansionTooLongError(
      `more than ${mostReferences} variables are written as $(NAME) in the command, arguments and environment of the ` +
        "container; write fewer, or let a shell in the container replace them",
    );
  }

  /** Throws when there is no space left for a value of this length. */
  spend(length: number): void {
    this.#length -= length;
    if (this.#length >= 0) return;
    const limit = `${longestExpansion / 1024 / 1024} MiB`;
    throw new ExpansionTooLongError(
      `the values of variables, written as $(NAME) or taken from elsewhere, add up to more than ${limit}; no program can be started so`,
    );
  }
}

/**
 * Replaces `$(NAME)` by what `lookup` knows, once and without recursion. An unknown name stays as written, `$$` is a
 * literal `$` (so `$$(X)` yields `$(X)`), and a `$` that starts neither stays. Texts that end up together share a budget.
 */
export function expand(
  text: string,
  lookup: (name: string) => string | undefined,
  budget = new ExpansionBudget(),
): string {
  // Looked for once, so that a text full of openings is not searched to its end for each.
  const lastClose = text.lastIndexOf(")");
  const parts: string[] = [];
  let position = 0;
  /** Up to here the text is in the parts. What stays as written is taken over in one piece, however long. */
  let taken = 0;
  for (;;) {
    const dollar = text.indexOf("$", position);
    if (dollar === -1 || dollar === text.length - 1) break;
    const next = text.charAt(dollar + 1);
    if (next === "$") {
      position = pairsEnd(text, dollar);
      parts.push(text.slice(taken, dollar + (position - dollar) / 2));
      taken = position;
    } else if (next === "(" && dollar < lastClose) {
      const close = text.indexOf(")", dollar);
      budget.refer();
      const value = lookup(text.slice(dollar + 2, close));
      position = close + 1;
      if (value === undefined) continue;
      budget.spend(value.length);
      parts.push(text.slice(taken, dollar), value);
      taken = position;
    } else {
      position = dollar + 2;
    }
  }
  parts.push(text.slice(taken));
  return parts.join("");
}

/** Where the `$$` that follow each other from here on end. */
function pairsEnd(text: string, from: number): number {
  let end = from;
  while (text.startsWith("$$", end)) end += 2;
  return end;
}

/** Thrown where every name must have a value, and some have none or an empty one. */
export class MissingVariablesError extends Error {
  override readonly name = "MissingVariablesError";
  readonly variables: readonly string[];
  constructor(variables: readonly string[]) {
    super(`missing value for ${variables.join(", ")}`);
    this.variables = variables;
  }
}

/** As `expand`, but a missing or empty variable is an error that names all of them. */
export function expandStrictly(
  text: string,
  lookup: (name: string) => string | undefined,
  budget = new ExpansionBudget(),
): string {
  const missing = new Set<string>();
  const known = (name: string): string | undefined => {
    const value = lookup(name);
    if (value === undefined || value === "") missing.add(name);
    return value;
  };
  const result = expand(text, known, budget);
  if (missing.size > 0) throw new MissingVariablesError([...missing].sort());
  return result;
}
