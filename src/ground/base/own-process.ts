import { fileURLToPath } from "node:url";
import { systemClock, type Timer } from "./clock.ts";
import type { ModuleJob } from "./process-messages.ts";
import { type ProcessListener, processes, type StartedProcess } from "./process-starter.ts";

export interface ProcessLimits {
  readonly timeMs: number;
  /** Of the JavaScript heap; beyond it the process ends, and not ours. */
  readonly heapMb: number;
}

export interface OwnProcess {
  readonly input: object;
  /** Undefined: that of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Starts the module `entry` as a process of its own, which is sent `input` and tells what it has to tell by messages. The
 * result is how it ended: it goes on until then, or until it is ended, which kills it.
 */
export function startOwnProcess(
  entry: URL,
  { input, env }: OwnProcess,
  listener: ProcessListener<ModuleJob>,
): StartedProcess {
  return processes.start({ type: "module", path: fileURLToPath(entry), input, env }, listener);
}

/**
 * Runs the module `entry` in a process of its own, for work on input so large that the event loop would stand still.
 * The process is sent `input` and answers with one message. It is killed when it takes too long; unlike work on the
 * event loop, that can be done from outside. It lives in real time, whatever clock its owner has.
 */
export async function inOwnProcess<Answer>(entry: URL, input: object, limits: ProcessLimits): Promise<Answer> {
  // It needs nothing of our environment.
  const env = { NODE_OPTIONS: `--max-old-space-size=${limits.heapMb}` };
  let child: StartedProcess | undefined;
  let timer: Timer | undefined;
  try {
    return await new Promise<Answer>((resolve, reject) => {
      const late = (): void => reject(new Error(`no answer within ${limits.timeMs / 1000} s`));
      timer = systemClock.after(limits.timeMs, late);
      const listener: ProcessListener<ModuleJob> = {
        message: (answer) => resolve(answer as Answer),
        result: (how) => reject(new Error(`the process for it ended with ${how} before it had an answer`)),
        notStarted: reject,
        failure: reject,
      };
      child = startOwnProcess(entry, { input, env }, listener);
    });
  } finally {
    timer?.cancel();
    child?.end();
  }
}
