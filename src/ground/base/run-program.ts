import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Clock } from "./clock.ts";
import { messageOf } from "./errors.ts";
import { onAbort } from "./signals.ts";

export interface ProgramCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly input: string;
}

const timeLimitMs = 60_000;
const longestAnswer = 4 * 1024 * 1024;
const longestComplaint = 4 * 1024;

/** Runs a program without a shell, feeds it `input` and resolves with what it wrote, unless it fails or dawdles. */
export function runProgram(command: ProgramCommand, clock: Clock, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  return new Promise<string>((resolve, reject) => {
    let child: ChildProcessWithoutNullStreams;
    try {
      child = spawn(command.program, command.args, { env: command.env, shell: false, stdio: "pipe" });
    } catch (error) {
      reject(new Error(`cannot be started: ${messageOf(error)}`));
      return;
    }
    const answer: Buffer[] = [];
    let answerBytes = 0;
    let complaint = "";
    const finish = (settle: () => void): void => {
      timer.cancel();
      listening[Symbol.dispose]();
      settle();
    };
    const kill = (reason: unknown): void => {
      child.kill("SIGKILL");
      // What the program started in turn may hold the pipes open for long.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      finish(() => reject(reason));
    };
    const timer = clock.after(timeLimitMs, () => kill(new Error(`did not answer within ${timeLimitMs / 1_000} s`)));
    const listening = onAbort(signal, () => kill(signal.reason));
    child.stdout.on("data", (chunk: Buffer) => {
      answer.push(chunk);
      answerBytes += chunk.length;
      if (answerBytes > longestAnswer) kill(new Error(`answered with more than ${longestAnswer} bytes`));
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      complaint = (complaint + chunk).slice(0, longestComplaint);
    });
    // A program may answer without reading its input; the broken pipe is then no failure.
    child.stdin.on("error", () => {});
    child.stdin.end(command.input);
    child.on("error", (error) => finish(() => reject(new Error(`cannot be started: ${error.message}`))));
    child.on("close", (code, killedBy) =>
      finish(() => {
        if (code === 0) resolve(Buffer.concat(answer).toString("utf8"));
        else {
          const how = killedBy === null ? `exited with ${code}` : `was ended by ${killedBy}`;
          reject(new Error(complaint.trim() === "" ? how : `${how}: ${complaint.trim()}`));
        }
      }),
    );
  });
}
