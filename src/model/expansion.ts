/**
 * How much the values of variables may add to the texts of one container. The kernel starts no program with more than
 * 6 MiB of arguments and environment, so what is beyond could never run; but a few variables that repeat each other
 * can grow without end before anybody tries.
 */
const longestExpansion = 8 * 1024 * 1024;

/** Thrown where variables that name each other would fill the memory of the node. */
export class ExpansionTooLongError extends Error {
  override readonly name = "ExpansionTooLongError";
  constructor() {
    const limit = `${longestExpansion / 1024 / 1024} MiB`;
    super(`the values of variables written as $(NAME) add up to more than ${limit}; no program can be started so`);
  }
}

/** What is left of the space that expansions may take together. */
export class ExpansionBudget {
  #left = longestExpansion;

  /** Throws when there is no space left. */
  spend(length: number): void {
    this.#left -= length;
    if (this.#left < 0) throw new ExpansionTooLongError();
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
  while (position < text.length) {
    const dollar = text.indexOf("$", position);
    if (dollar === -1 || dollar === text.length - 1) break;
    parts.push(text.slice(position, dollar));
    const next = text.charAt(dollar + 1);
    if (next === "(" && dollar < lastClose) {
      const close = text.indexOf(")", dollar);
      const value = lookup(text.slice(dollar + 2, close));
      if (value !== undefined) budget.spend(value.length);
      parts.push(value ?? text.slice(dollar, close + 1));
      position = close + 1;
    } else {
      parts.push(next === "$" ? "$" : `$${next}`);
      position = dollar + 2;
    }
  }
  parts.push(text.slice(position));
  return parts.join("");
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
