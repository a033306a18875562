import type { Clock } from "./clock.ts";
import { processes } from "./process-starter.ts";
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
  /** What ends it also ends whatever it has started and not put aside: it leads a process group of its own. */
  readonly withChildren?: boolean;
  /** It has really ended, which may be long after it was told to. Also called when it could not be started. */
  readonly onGone?: () => void;
}

/** How a program ended, well or not. */
export interface ProgramResult {
  /** Undefined when it was killed. */
  readonly exitCode: number | undefined;
  readonly killedBy: string | undefined;
  readonly stdout: string;
  readonly stderr: string;
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
const defaultLongestAnswer = 4 * 1024 * 1024;
const longestComplaint = 4 * 1024;

/** As runToEnd, for a program that is to answer within a minute. */
export function runProgram(command: ProgramCommand, clock: Clock, signal: AbortSignal): Promise<string> {
  const late = (): Error => new Error(`did not answer within ${timeLimitMs / 1_000} s`);
  return withDeadline(clock, timeLimitMs, late, signal, (bounded) => runToEnd(command, bounded));
}

/** Runs a program without a shell, feeds it `input` and resolves with what it printed, or rejects with ProgramError. */
export async function runToEnd(command: ProgramCommand, signal: AbortSignal): Promise<string> {
  const { exitCode, killedBy, stdout, stderr } = await runForResult(command, signal);
  if (exitCode === 0) return stdout;
  const how = killedBy === undefined ? `exited with ${exitCode}` : `was ended by ${killedBy}`;
  throw new ProgramError(how, exitCode, stdout, stderr);
}

/** As runToEnd, for a program whose failures have something to say; rejects with ProgramError when it can't be started. */
export async function runForResult(command: ProgramCommand, signal: AbortSignal): Promise<ProgramResult> {
  signal.throwIfAborted();
  const { program, args, env, input, longestAnswer = defaultLongestAnswer, endBy = "SIGKILL", onGone } = command;
  const { withChildren = false } = command;
  const job = { type: "program", program, args, env, input, longestAnswer, endBy, withChildren } as const;
  return await waitFor<ProgramResult>(signal, (done, fail) => {
    const child = processes.start(job, {
      result: done,
      notStarted: (error) => fail(new ProgramError(`cannot be started: ${error.message}`, undefined, "", "", error)),
      failure: fail,
      gone: () => onGone?.(),
    });
    return () => child.end();
  });
}
