import { goQuote } from "../../base/index.ts";
import type { KubeletFlags } from "../agent-config.ts";
import { buildFlags } from "./apply-flags.ts";
import { parseFlags } from "./parse-flags.ts";

/** What no agent would take of these words, whatever the files say. */
export function flagProblems(argv: readonly string[]): readonly string[] {
  const { problems, positional } = parseFlags(argv);
  return [...problems.map(({ message }) => message), ...positional.map((word) => `unexpected word ${goQuote(word)}`)];
}

/** The flags alone, whatever the files say; undefined when the command line can't be read. */
export function flagsOf(argv: readonly string[]): KubeletFlags | undefined {
  const parsed = parseFlags(argv);
  return parsed.problems.length > 0 ? undefined : buildFlags(parsed);
}
