import type { Clock } from "../../ground/base/index.ts";

/** What a command may use of the world outside; main.ts hands it the real one. */
export interface CommandIo {
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  /** True when a person watches stdout, so that lines may be drawn over. */
  readonly isTTY: boolean;
  /** Size of the terminal at this moment. */
  readonly terminal: () => { readonly columns: number; readonly rows: number };
  /** Aborted when the user wants the command to end (Ctrl-C). */
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The directory relative paths are meant from. */
  readonly cwd: string;
  /** Where nodelet is installed: the directory with bin/, dist/ and examples/. */
  readonly home: string;
  readonly clock: Clock;
}

export interface TextSink {
  write(text: string): unknown;
}

/** A command: its words after the name, and the exit code it comes to. */
export type Command = (args: readonly string[], io: CommandIo) => Promise<number>;

/** The user called the command in a way it does not understand; the message says how it is called. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
