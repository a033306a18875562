import type { Clock } from "../../ground/base/index.ts";
import type { ScreenSize } from "./terminal-size.ts";

/** What a command may use of the world outside; main.ts hands it the real one. */
export interface CommandIo {
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  /** True when a person watches stdout, so that lines may be drawn over. */
  readonly isTTY: boolean;
  /** Opened by who needs it. */
  readonly input: () => UserInput;
  /** Size of the terminal at this moment. */
  readonly terminal: () => ScreenSize;
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
  /** `done` is called when the reader can take more. */
  write(text: string | Uint8Array, done?: () => void): unknown;
}

/** Resolves when the reader can take more, so that a slow one is not overrun. */
export function writeThrough(sink: TextSink, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => void sink.write(text, () => resolve()));
}

/** What the user types, or pipes in. */
export interface UserInput {
  readonly isTTY: boolean;
  /** Raw: keys go to the command in the container, Ctrl-C among them. */
  setRaw(raw: boolean): void;
  /** What comes until it ends. */
  read(signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Calls the listener when the terminal has another size, until the result is called. */
  onResize(listener: () => void): () => void;
}

/** A command: its words after the name, and the exit code it comes to. */
export type Command = (args: readonly string[], io: CommandIo) => Promise<number>;

/** The user called the command in a way it does not understand; the message says how it is called. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
