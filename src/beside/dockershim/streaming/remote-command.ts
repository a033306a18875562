import type { Readable, Writable } from "node:stream";
import type { TerminalSize } from "../engine/index.ts";

/** How a command or an attachment ended. */
export type CommandOutcome =
  | { readonly type: "done" }
  | { readonly type: "exit"; readonly code: number }
  | { readonly type: "failed"; readonly message: string };

/** The client's streams of a command, whatever protocol carries them. */
export interface RemoteCommand {
  readonly stdin: Readable | undefined;
  readonly stdout: Writable | undefined;
  readonly stderr: Writable | undefined;
  /** Bytes of JSON objects, one for each new size of the terminal. */
  readonly resize: Readable | undefined;
  /** Resolves when the client is gone. */
  readonly closed: Promise<void>;
  /** Tells how it ended, and closes. */
  finish(outcome: CommandOutcome): Promise<void>;
}

/** The status that the client reads at the end, as API servers write it. */
export function statusOf(outcome: CommandOutcome): object {
  switch (outcome.type) {
    case "done":
      return { metadata: {}, status: "Success" };
    case "exit":
      if (outcome.code === 0) return { metadata: {}, status: "Success" };
      return {
        metadata: {},
        status: "Failure",
        message: `command terminated with non-zero exit code: ${outcome.code}`,
        reason: "NonZeroExitCode",
        details: { causes: [{ reason: "ExitCode", message: String(outcome.code) }] },
      };
    case "failed":
      return { metadata: {}, status: "Failure", message: outcome.message, reason: "InternalError", code: 500 };
  }
}

/** What older protocols write: nothing when it went well. */
export function plainStatusOf(outcome: CommandOutcome): string {
  if (outcome.type === "done") return "";
  if (outcome.type === "failed") return outcome.message;
  return outcome.code === 0 ? "" : `command terminated with non-zero exit code: ${outcome.code}`;
}

const longestPending = 4096;

/** New sizes out of a stream of JSON objects. */
export async function* sizesIn(stream: Readable): AsyncGenerator<TerminalSize, void> {
  let pending = "";
  for await (const chunk of stream) {
    pending += String(chunk);
    for (let end = pending.indexOf("}"); end >= 0; end = pending.indexOf("}")) {
      const size = sizeIn(pending.slice(0, end + 1));
      pending = pending.slice(end + 1);
      if (size !== undefined) yield size;
    }
    if (pending.length > longestPending) return;
  }
}

function sizeIn(text: string): TerminalSize | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return undefined;
    const { Width: columns, Height: rows } = value as { Width?: unknown; Height?: unknown };
    const fits = (number: unknown): number is number =>
      Number.isInteger(number) && Number(number) >= 1 && Number(number) <= 65_535;
    return fits(columns) && fits(rows) ? { columns, rows } : undefined;
  } catch {
    return undefined;
  }
}
