import { readDuration } from "../../base/index.ts";
import { TextError } from "./go-text.ts";

/** Milliseconds of a duration that a person has set. */
export function durationOf(text: string): number {
  const read = readDuration(text);
  if ("problem" in read) throw new TextError(read.problem);
  return read.ms;
}
