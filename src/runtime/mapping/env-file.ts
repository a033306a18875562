/**
 * The value of a key in an env file: lines `NAME=value`, blank lines and `#` comments between them, a backslash at a
 * line's end continuing it. Undefined when no line names the key; a line of any other form is an error.
 */
export function envFileValue(text: string, key: string): string | undefined {
  let continued: string | undefined;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.replace(/^[ \t]+|[ \t]+$/g, "");
    if (line === "" || line.startsWith("#")) {
      if (continued === undefined) continue;
      throw new EnvFileError(index + 1, line === "" ? "a blank line interrupts" : "a comment interrupts");
    }
    const joined = continued === undefined ? line : `${continued} ${line}`;
    if (joined.endsWith("\\")) {
      continued = joined.slice(0, -1).replace(/[ \t]+$/, "");
      continue;
    }
    continued = undefined;
    const match = /^([^=]*?)\s*=\s*(.*)$/.exec(joined);
    if (match?.[1] === undefined || match[1] === "") throw new EnvFileError(index + 1, "wanted NAME=value at");
    if (match[1] === key) return match[2] ?? "";
  }
  if (continued !== undefined) throw new EnvFileError(text.split("\n").length, "the file ends within");
  return undefined;
}

class EnvFileError extends Error {
  override readonly name = "EnvFileError";
  constructor(line: number, problem: string) {
    super(`Cannot read env file: ${problem} line ${line}`);
  }
}
