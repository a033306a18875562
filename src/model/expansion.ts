/**
 * Replaces `$(NAME)` by what `lookup` knows, once and without recursion. An unknown name stays as written, `$$` is a
 * literal `$` (so `$$(X)` yields `$(X)`), and a `$` that starts neither stays.
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  let result = "";
  let position = 0;
  while (position < text.length) {
    const dollar = text.indexOf("$", position);
    if (dollar === -1 || dollar === text.length - 1) break;
    result += text.slice(position, dollar);
    const next = text[dollar + 1];
    const close = next === "(" ? text.indexOf(")", dollar) : -1;
    if (close !== -1) {
      const written = text.slice(dollar, close + 1);
      result += lookup(written.slice(2, -1)) ?? written;
      position = close + 1;
    } else {
      result += next === "$" ? "$" : `$${next}`;
      position = dollar + 2;
    }
  }
  return result + text.slice(position);
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
export function expandStrictly(text: string, lookup: (name: string) => string | undefined): string {
  const missing = new Set<string>();
  const result = expand(text, (name) => {
    const value = lookup(name);
    if (value === undefined || value === "") missing.add(name);
    return value;
  });
  if (missing.size > 0) throw new MissingVariablesError([...missing].sort());
  return result;
}
