import { execFile } from "node:child_process";

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
    return this.cause instanceof Error && "code" in this.cause && this.cause.code === "ENOENT";
  }
}

/** Runs a program to its end and returns what it printed. */
export function run(
  program: string,
  args: readonly string[],
  options: { readonly input?: string; readonly signal?: AbortSignal } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const { input, signal } = options;
    const settings = { maxBuffer: 64 * 1024 * 1024, ...(signal === undefined ? {} : { signal }) };
    const child = execFile(program, args, settings, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else if (signal?.aborted) reject(signal.reason);
      else reject(new CommandError([program, ...args].join(" "), stderr, error));
    });
    // A program that never reads its input closes the pipe early; its exit status tells the rest.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input ?? "");
  });
}
