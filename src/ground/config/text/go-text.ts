// How Go reads scalars from text: the flags and files of a kubelet mean what Go's parsers make of them.
import { goQuote } from "../../base/index.ts";

/** A value that cannot be read; the message is the one Go's parser gives. */
export class TextError extends Error {
  override readonly name = "TextError";
}

const trueWords = new Set(["1", "t", "T", "true", "TRUE", "True"]);
const falseWords = new Set(["0", "f", "F", "false", "FALSE", "False"]);

export function parseBool(text: string): boolean {
  if (trueWords.has(text)) return true;
  if (falseWords.has(text)) return false;
  throw new TextError(`strconv.ParseBool: parsing ${goQuote(text)}: invalid syntax`);
}

// Underscores may stand between digits and after the base prefix, as in Go source.
const integerPattern = /^[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|0|[1-9](?:_?[0-9])*)$/;

/** A signed integer of the given width, in base 10, 0x, 0o, 0b or with the leading 0 of octals. */
export function parseInteger(text: string, bits: 32 | 64): number {
  if (!integerPattern.test(text)) {
    throw new TextError(`strconv.ParseInt: parsing ${goQuote(text)}: invalid syntax`);
  }
  const negative = text.startsWith("-");
  const digits = text.replace(/^[+-]/, "").replaceAll("_", "");
  const magnitude = BigInt(/^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits);
  return fitInteger(negative ? -magnitude : magnitude, bits, text);
}

function fitInteger(value: bigint, bits: 32 | 64, text: string): number {
  if (BigInt.asIntN(bits, value) !== value) {
    throw new TextError(`strconv.ParseInt: parsing ${goQuote(text)}: value out of range`);
  }
  if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER) {
    throw new TextError(`${text} is too large, the largest number supported is ${Number.MAX_SAFE_INTEGER}`);
  }
  return Number(value);
}

/** A decimal integer from 0 to 2^31-1, the range of a log verbosity. */
export function parseVerbosity(text: string): number {
  if (!/^[0-9]+$/.test(text)) throw new TextError(`strconv.ParseUint: parsing ${goQuote(text)}: invalid syntax`);
  const value = BigInt(text);
  if (value >= 2n ** 31n) throw new TextError(`strconv.ParseUint: parsing ${goQuote(text)}: value out of range`);
  return Number(value);
}

export function parseDecimal(text: string): number {
  if (!/^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/.test(text)) {
    throw new TextError(`strconv.ParseFloat: parsing ${goQuote(text)}: invalid syntax`);
  }
  const value = Number(text);
  if (!Number.isFinite(value)) {
    throw new TextError(`strconv.ParseFloat: parsing ${goQuote(text)}: value out of range`);
  }
  return value;
}

/** The fields of one comma-separated record; a field that starts with a quote may hold commas and doubled quotes. */
export function parseCsvRecord(text: string): string[] {
  if (text === "") return [];
  const line = text.split("\n", 1)[0] ?? "";
  const fields: string[] = [];
  let rest = line;
  for (;;) {
    if (rest.startsWith('"')) {
      const match = /^"((?:[^"]|"")*)"(?:,|$)/.exec(rest);
      if (match === null)
        throw new TextError(`record ${goQuote(line)}: a quoted field must end with a quote and a comma`);
      fields.push((match[1] ?? "").replaceAll('""', '"'));
      if (match[0].length === rest.length) {
        if (match[0].endsWith(",")) fields.push("");
        return fields;
      }
      rest = rest.slice(match[0].length);
      continue;
    }
    const comma = rest.indexOf(",");
    const field = comma < 0 ? rest : rest.slice(0, comma);
    if (field.includes('"')) throw new TextError(`record ${goQuote(line)}: bare " in non-quoted field`);
    fields.push(field);
    if (comma < 0) return fields;
    rest = rest.slice(comma + 1);
  }
}
