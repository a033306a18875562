import { createHash } from "node:crypto";
import { emptyState, type RolloutState } from "./state.ts";

/** Another one when the shape of the state changes: an agent does not read what another release meant. */
const format = 1;

/** A state as text, with what it takes to see that all of it is there. */
export function writeState(state: RolloutState, sequence: number): string {
  const body = JSON.stringify(state);
  return `${JSON.stringify({ format, sequence, checksum: checksumOf(body), body })}\n`;
}

/** Undefined when the text is not whole, or not ours. */
export function readState(text: string): { readonly state: RolloutState; readonly sequence: number } | undefined {
  try {
    const { format: found, sequence, checksum, body } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (found !== format || typeof sequence !== "number" || typeof body !== "string") return undefined;
    // What carries its checksum was written by us, in this shape.
    return checksum === checksumOf(body) ? { state: { ...emptyState, ...JSON.parse(body) }, sequence } : undefined;
  } catch {
    return undefined;
  }
}

function checksumOf(body: string): string {
  return createHash("sha256").update(body).digest("hex");
}
