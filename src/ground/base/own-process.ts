import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { systemClock } from "./clock.ts";
import { whyNotStarted } from "./run-program.ts";

export interface ProcessLimits {
  readonly timeMs: number;
  /** Of the JavaScript heap; beyond it the process ends, and not ours. */
  readonly heapMb: number;
}

/**
 * Runs the module `entry` in a process of its own, for work on input so large that the event loop would stand still.
 * The process is sent `input` and answers with one message. It is killed when it takes too long; unlike work on the
 * event loop, that can be done from outside. It lives in real time, whatever clock its owner has.
 */
export async function inOwnProcess<Answer>(entry: URL, input: object, limits: ProcessLimits): Promise<Answer> {
  const child = fork(fileURLToPath(entry), {
    serialization: "advanced",
    // Nothing of what it might print is ours, and it needs nothing of our environment.
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env: { NODE_OPTIONS: `--max-old-space-size=${limits.heapMb}` },
  });
  if (child.pid === undefined) throw await whyNotStarted(child);
  const exited = once(child, "exit").catch(() => {});
  try {
    return await new Promise<Answer>((resolve, reject) => {
      const late = (): void => reject(new Error(`no answer within ${limits.timeMs / 1000} s`));
      const timer = systemClock.after(limits.timeMs, late);
      child.once("message", (answer) => resolve(answer as Answer));
      child.once("error", reject);
      child.once("exit", (code, killedBy) => {
        timer.cancel();
        reject(new Error(`the process for it ended with ${killedBy ?? `code ${code}`} before it had an answer`));
      });
      child.send(input, (error) => {
        if (error !== null) reject(error);
      });
    });
  } finally {
    child.kill("SIGKILL");
    await exited;
  }
}
