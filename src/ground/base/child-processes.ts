import { type ChildProcess, type ChildProcessWithoutNullStreams, fork, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { messageOf } from "./errors.ts";
import type { ModuleJob, ProgramJob } from "./process-messages.ts";
import type { ProgramResult } from "./run-program.ts";
import { waitFor } from "./signals.ts";

// Runs in the thread of process-thread.ts: to start a process is to stand still until it has begun.

/** Who started a process is told, besides how it ended. */
export interface ProcessEvents {
  begun(): void;
  message(message: unknown): void;
  gone(): void;
}

/** The system's reason, as `cause`. */
export class NotStartedError extends Error {
  override readonly name = "NotStartedError";
}

/** What a program may say on the side, though most of it is not kept. */
const mostComplaints = 16 * 1024 * 1024;

/** Runs a program to its end; rejects with NotStartedError when it can't be started. */
export async function runProgramHere(
  job: ProgramJob,
  events: ProcessEvents,
  signal: AbortSignal,
): Promise<ProgramResult> {
  const { program, args, env, input = "", longestAnswer: limit, withChildren } = job;
  const child = await started(
    () => spawn(program, args, { ...(env && { env }), shell: false, stdio: "pipe", detached: withChildren }),
    events,
  );
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
      // To read on without end would keep this thread busy for as long as the program may run.
      if (complained > mostComplaints) fail(new Error(`complained with more than ${mostComplaints} bytes`));
    });
    // A program may answer without reading its input; the broken pipe is then no failure.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    child.on("error", fail);
    child.on("close", (code, killedBy) =>
      done({
        exitCode: code ?? undefined,
        killedBy: killedBy ?? undefined,
        stdout: stdout.text,
        stderr: stderr.text,
      }),
    );
    return () => {
      if (child.exitCode === null && child.signalCode === null) end(child, job);
      // What the program started in turn may hold the pipes open for long.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    };
  });
}

/** Runs a module until its process ends, and says how that ended; rejects with NotStartedError when it can't be started. */
export async function runModuleHere(job: ModuleJob, events: ProcessEvents, signal: AbortSignal): Promise<string> {
  const { path, input, env } = job;
  // Nothing of what it might print is ours.
  const stdio = ["ignore", "ignore", "ignore", "ipc"] as const;
  const child = await started(
    () => fork(path, { serialization: "advanced", stdio: [...stdio], ...(env && { env }) }),
    events,
  );
  return await waitFor<string>(signal, (done, fail) => {
    child.on("message", (message) => events.message(message));
    child.on("error", fail);
    child.once("exit", (code, killedBy) => done(killedBy ?? `code ${code}`));
    child.send(input, (error) => {
      if (error !== null) fail(error);
    });
    return () => {
      child.kill("SIGKILL");
      child.channel?.unref();
    };
  });
}

/**
 * The process, or why there is none. Whoever finds a child without a number asks at once, or the reason becomes an error
 * that nobody caught, and touches nothing else of it: without descriptors it has no streams, and while the error is on
 * its way a signal to it reaches our own process group, the agent included.
 */
async function started<Child extends ChildProcess>(start: () => Child, events: ProcessEvents): Promise<Child> {
  let child: Child;
  try {
    child = start();
  } catch (error) {
    events.gone();
    throw new NotStartedError(messageOf(error), { cause: error });
  } finally {
    events.begun();
  }
  if (child.pid === undefined) {
    const [error] = (await once(child, "error")) as [Error];
    events.gone();
    throw new NotStartedError(error.message, { cause: error });
  }
  child.once("exit", () => events.gone());
  return child;
}

function end(child: ChildProcessWithoutNullStreams, { endBy, withChildren }: ProgramJob): void {
  if (!withChildren || child.pid === undefined) {
    child.kill(endBy);
    return;
  }
  try {
    process.kill(-child.pid, endBy);
  } catch {
    // It has ended in this moment.
  }
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
