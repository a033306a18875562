import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
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
const longestAnswer = 4 * 1024 * 1024;
const longestComplaint = 4 * 1024;
/** What a program may say on the side, though most of it is not kept. */
const mostComplaints = 16 * 1024 * 1024;

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
  const child = start(command);
  if (child.pid === undefined) throw cannotStart(await whyNotStarted(child));
  const { input = "" } = command;
  const limit = command.longestAnswer ?? longestAnswer;
  const stdout = new Output(limit);
  const stderr = new Output(limit);
  return await waitFor<ProgramResult>(signal, (done, fail) => {
    child.stdout.on("data", (chunk: Buffer) => {
      if (!stdout.add(chunk)) fail(new Error(`answered with more than ${limit} bytes`));
    });
    let complained = 0;
    child.stderr.on("data", (chunk: Buffer) => {
      stderr.add(chunk);
      complained += chunk.length;
      // To read on without end would keep this process busy for as long as the program may run.
      if (complained > mostComplaints) fail(new Error(`complained with more than ${mostComplaints} bytes`));
    });
    // A program may answer without reading its input; the broken pipe is then no failure.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    child.on("error", (error) => fail(cannotStart(error)));
    child.on("close", (code, killedBy) =>
      done({
        exitCode: code ?? undefined,
        killedBy: killedBy ?? undefined,
        stdout: stdout.text,
        stderr: stderr.text,
      }),
    );
    return () => {
      if (child.exitCode === null && child.signalCode === null) end(child, command);
      // What the program started in turn may hold the pipes open for long.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    };
  });
}

/**
 * Why there is no process. Whoever finds a child without a number asks at once, or the reason becomes an error that nobody
 * caught, and touches nothing else of it: without descriptors it has no streams, and while the error is on its way a
 * signal to it reaches our own process group, the agent included.
 */
export async function whyNotStarted(child: ChildProcess): Promise<Error> {
  const [error] = (await once(child, "error")) as [Error];
  return error;
}

function end(child: ChildProcessWithoutNullStreams, { endBy = "SIGKILL", withChildren }: ProgramCommand): void {
  if (withChildren !== true || child.pid === undefined) {
    child.kill(endBy);
    return;
  }
  try {
    process.kill(-child.pid, endBy);
  } catch {
    // It has ended in this moment.
  }
}

function start({ program, args, env, withChildren, onGone }: ProgramCommand): ChildProcessWithoutNullStreams {
  let child: ChildProcessWithoutNullStreams;
  try {
    const detached = withChildren === true;
    child = spawn(program, args, { ...(env !== undefined && { env }), shell: false, stdio: "pipe", detached });
  } catch (error) {
    onGone?.();
    throw cannotStart(error);
  }
  if (onGone !== undefined) {
    child.once("exit", onGone);
    child.once("error", () => {
      if (child.pid === undefined) onGone();
    });
  }
  return child;
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
