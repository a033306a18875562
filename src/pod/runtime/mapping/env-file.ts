/**
 * The value of a key in an env file: lines `NAME=value`, blank lines and `#` comments between them, a backslash at a
 * line's end continuing it. Undefined when no line names the key; a line of any other form is an error.
 */
export function envFileValue(text: string, key: string): string | undefined {
  /** The pieces of a line that goes on; joined at its end, since it may have as many as the file has lines. */
  let pieces: string[] = [];
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = trimEnd(raw).replace(/^[ \t]+/, "");
    if (line === "" || line.startsWith("#")) {
      if (pieces.length === 0) continue;
      throw new EnvFileError(index + 1, line === "" ? "a blank line interrupts" : "a comment interrupts");
    }
    if (line.endsWith("\\")) {
      const piece = trimEnd(line.slice(0, -1));
      if (piece !== "" || pieces.length === 0) pieces.push(piece);
      continue;
    }
    const joined = [...pieces, line].join(" ");
    pieces = [];
    const equals = joined.indexOf("=");
    const name = joined.slice(0, Math.max(equals, 0)).trimEnd();
    if (name === "") throw new EnvFileError(index + 1, "wanted NAME=value at");
    if (name === key) return joined.slice(equals + 1).trimStart();
  }
  if (pieces.length > 0) throw new EnvFileError(text.split("\n").length, "the file ends within");
  return undefined;
}

/** Without blanks at the end. Not by a pattern: one that looks for an end starts anew at each blank of a long line. */
function trimEnd(line: string): string {
  let end = line.length;
  while (end > 0 && (line[end - 1] === " " || line[end - 1] === "\t")) end--;
  return line.slice(0, end);
}

class EnvFileError extends Error {
  override readonly name = "EnvFileError";
  constructor(line: number, problem: string) {
    super(`Cannot read env file: ${problem} line ${line}`);
  }
}
