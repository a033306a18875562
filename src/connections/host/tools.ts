import { execFile } from "node:child_process";

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

export const runTool: RunTool = (program, args, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    execFile(program, [...args], { env, signal, maxBuffer: longestOutput }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else if (signal.aborted) reject(signal.reason);
      else {
        const { code } = error;
        const missing = code === ("ENOENT" as unknown) ? `${program} is not installed` : undefined;
        const output = missing ?? `${stdout}${stderr}`.trim();
        reject(new ToolError(program, args, typeof code === "number" ? code : undefined, output, error));
      }
    });
  });
