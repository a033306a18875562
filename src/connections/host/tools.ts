import { hasCode, ProgramError, runToEnd } from "../../ground/base/index.ts";

/** A program of the system failed. */
export class ToolError extends Error {
  override readonly name = "ToolError";
  /** Undefined when it could not be started or was killed. */
  readonly exitCode: number | undefined;
  readonly output: string;

  constructor(program: string, args: readonly string[], exitCode: number | undefined, output: string, cause: unknown) {
    const how = exitCode === undefined ? "failed" : `exited with ${exitCode}`;
    super(`${[program, ...args].join(" ")} ${how}${output === "" ? "" : `: ${output}`}`, { cause });
    this.exitCode = exitCode;
    this.output = output;
  }
}

/** Runs a program without a shell; resolves with what it printed, or throws ToolError. */
export type RunTool = (program: string, args: readonly string[], signal: AbortSignal) => Promise<string>;

const env = { PATH: "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };
const longestOutput = 1024 * 1024;

export const runTool: RunTool = async (program, args, signal) => {
  try {
    // Asked to end, not killed: a file system is being made or mended.
    return await runToEnd({ program, args, env, longestAnswer: longestOutput, endBy: "SIGTERM" }, signal);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const { exitCode, stdout = "", stderr = "", cause } = error instanceof ProgramError ? error : {};
    const missing = hasCode(cause, "ENOENT") ? `${program} is not installed` : undefined;
    throw new ToolError(program, args, exitCode, missing ?? `${stdout}${stderr}`.trim(), error);
  }
};
