import type { CST } from "yaml";

/** No manifest and no configuration is a tenth as deep. */
export const deepestYaml = 200;

class NestingError extends Error {
  override readonly name = "NestingError";
}

/**
 * Passes on what a parser of YAML has found, unless collections lie deeper in one another than `deepestYaml`. Whoever
 * makes a document of them calls itself for each level. Where the stack ends, that is usually an error like any other,
 * but not when a regular expression has to be compiled right there: then V8 ends the whole process.
 */
export function* boundNesting(tokens: Iterable<CST.Token>): Generator<CST.Token> {
  for (const token of tokens) {
    if (isDeeper(token, deepestYaml)) throw new NestingError(`it is nested more than ${deepestYaml} levels deep`);
    yield token;
  }
}

function isDeeper(top: CST.Token, most: number): boolean {
  const waiting: (readonly [token: CST.Token, depth: number])[] = [[top, 0]];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [token, depth] = next;
    if (depth > most) return true;
    for (const inner of partsOf(token)) waiting.push([inner, depth + 1]);
  }
  return false;
}

function partsOf(token: CST.Token): readonly CST.Token[] {
  if ("value" in token && token.type === "document") return token.value === undefined ? [] : [token.value];
  if (!("items" in token)) return [];
  return token.items.flatMap(({ key, value }) => [...(key ? [key] : []), ...(value ? [value] : [])]);
}
