import { hasCode, never, ProgramError, runToEnd } from "../../../ground/base/index.ts";

/** A program that could not be started or ended with a failure. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly command: string;
  readonly stderr: string;

  constructor(command: string, stderr: string, cause: Error) {
    super(`"${command}" failed: ${stderr.trim() || cause.message}`, { cause });
    this.command = command;
    this.stderr = stderr;
  }

  /** True when the program itself is not installed. */
  get absent(): boolean {
    return hasCode(this.cause, "ENOENT");
  }
}

const longestAnswer = 64 * 1024 * 1024;

/** Runs a program to its end and returns what it printed. */
export async function run(
  program: string,
  args: readonly string[],
  { input = "", signal = never }: { readonly input?: string; readonly signal?: AbortSignal } = {},
): Promise<string> {
  try {
    return await runToEnd({ program, args, input, longestAnswer, endBy: "SIGTERM" }, signal);
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    const cause = error.cause instanceof Error ? error.cause : error;
    throw new CommandError([program, ...args].join(" "), error.stderr, cause);
  }
}
