import { table } from "./table.ts";

const shortEscapes: Readonly<Record<string, string>> = table({
  '"': '\\"',
  "\\": "\\\\",
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
});

/** A text between double quotes, escaped as a Go program prints it (%q). */
export function goQuote(text: string): string {
  // Quotes, backslashes and all that is neither a visible character nor a plain space.
  return `"${text.replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, goEscape)}"`;
}

/** One character as Go escapes it. Half a surrogate pair is no character, and becomes the sign for that. */
export function goEscape(character: string): string {
  const short = shortEscapes[character];
  if (short !== undefined) return short;
  const code = character.codePointAt(0) ?? 0xfffd;
  if (code >= 0xd800 && code <= 0xdfff) return "\ufffd";
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}
