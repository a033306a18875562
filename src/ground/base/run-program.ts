import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Clock } from "./clock.ts";
import { messageOf } from "./errors.ts";
import { waitFor, withDeadline } from "./signals.ts";

export interface ProgramCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** Undefined: that of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** What it may print at the most; it is ended when it prints more. */
  readonly longestAnswer?: number;
  /** What ends it when it is no longer wanted; SIGKILL unless it has to put things in order first. */
  readonly endBy?: "SIGKILL" | "SIGTERM";
}

/** A program that could not be started, or ended with a failure. */
export class ProgramError extends Error {
  override readonly name = "ProgramError";
  /** Undefined when it could not be started or was killed. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;

  constructor(how: string, exitCode: number | undefined, stdout: string, stderr: string, cause?: unknown) {
    const complaint = stderr.slice(0, longestComplaint).trim();
    super(complaint === "" ? how : `${how}: ${complaint}`, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

const timeLimitMs = 60_000;
const longestAnswer = 4 * 1024 * 1024;
const longestComplaint = 4 * 1024;

/** As runToEnd, for a program that is to answer within a minute. */
export function runProgram(command: ProgramCommand, clock: Clock, signal: AbortSignal): Promise<string> {
  const late = (): Error => new Error(`did not answer within ${timeLimitMs / 1_000} s`);
  return withDeadline(clock, timeLimitMs, late, signal, (bounded) => runToEnd(command, bounded));
}

/** Runs a program without a shell, feeds it `input` and resolves with what it printed, or rejects with ProgramError. */
export async function runToEnd(command: ProgramCommand, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  const child = start(command);
  const { endBy = "SIGKILL", input = "" } = command;
  const limit = command.longestAnswer ?? longestAnswer;
  const stdout = new Output(limit);
  const stderr = new Output(limit);
  return await waitFor<string>(signal, (done, fail) => {
    child.stdout.on("data", (chunk: Buffer) => {
      if (!stdout.add(chunk)) fail(new Error(`answered with more than ${limit} bytes`));
    });
    child.stderr.on("data", (chunk: Buffer) => stderr.add(chunk));
    // A program may answer without reading its input; the broken pipe is then no failure.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    child.on("error", (error) => fail(cannotStart(error)));
    child.on("close", (code, killedBy) => {
      if (code === 0) return done(stdout.text);
      const how = killedBy === null ? `exited with ${code}` : `was ended by ${killedBy}`;
      fail(new ProgramError(how, code ?? undefined, stdout.text, stderr.text));
    });
    return () => {
      if (child.exitCode === null && child.signalCode === null) child.kill(endBy);
      // What the program started in turn may hold the pipes open for long.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    };
  });
}

function start({ program, args, env }: ProgramCommand): ChildProcessWithoutNullStreams {
  try {
    return spawn(program, args, { ...(env !== undefined && { env }), shell: false, stdio: "pipe" });
  } catch (error) {
    throw cannotStart(error);
  }
}

function cannotStart(error: unknown): ProgramError {
  return new ProgramError(`cannot be started: ${messageOf(error)}`, undefined, "", "", error);
}

/** What a program printed, up to a limit. */
class Output {
  readonly #limit: number;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** False when it was too much, and was not kept. */
  add(chunk: Buffer): boolean {
    if (this.#bytes + chunk.length > this.#limit) return false;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    return true;
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString("utf8");
  }
}
