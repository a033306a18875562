import { CriError, type ExecSyncResponse } from "../../connections/cri/index.ts";
import { type Clock, onAbort } from "../../ground/base/index.ts";
import { FakeProcess } from "./fake-process.ts";
import type { ContainerRecord } from "./records.ts";
import { behaviourOf, commandNotFound, type UnknownPrograms } from "./shell.ts";

/** What a command run in a container does. */
export interface ExecAnswer {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exitCode?: number;
  /** How long it takes; `forever` never ends by itself. */
  readonly afterMs?: number | "forever";
}

/** undefined: the command is run by the simulated shell. */
export type ExecScript = (command: readonly string[], container: ContainerRecord) => ExecAnswer | undefined;

interface Exec {
  readonly container: ContainerRecord;
  readonly command: readonly string[];
  readonly timeoutSeconds: bigint;
  readonly answer: ExecAnswer | undefined;
  readonly unknownPrograms: UnknownPrograms;
}

const failed = (code: "Unknown" | "DeadlineExceeded", why: string): CriError =>
  new CriError(code, "execSync", `failed to exec in container: ${why}`);

/** Runs a command to its end, to its timeout, or until its container exits. */
export async function execSync(exec: Exec, clock: Clock, signal: AbortSignal): Promise<ExecSyncResponse> {
  const { container, command, timeoutSeconds } = exec;
  if (container.life.step !== "running") {
    throw failed("Unknown", `container is in CONTAINER_${container.life.step.toUpperCase()} state`);
  }
  const behaviour = behaviourOfExec(exec);
  const output = { stdout: "", stderr: "" };
  const clean: (() => void)[] = [];
  try {
    const exitCode = await new Promise<number>((resolve, reject) => {
      const process = new FakeProcess(behaviour, "die", {
        clock,
        print: (stream, text) => {
          output[stream] += text;
        },
        write: () => {},
        exited: resolve,
      });
      const onContainerExit = (): void => process.kill();
      const listening = onAbort(signal, () => reject(signal.reason));
      container.exited.add(onContainerExit);
      clean.push(() => {
        listening[Symbol.dispose]();
        container.exited.delete(onContainerExit);
        process.kill();
      });
      if (timeoutSeconds > 0n) {
        const late = (): void =>
          reject(failed("DeadlineExceeded", `timeout ${timeoutSeconds}s exceeded: context deadline exceeded`));
        const timer = clock.after(Number(timeoutSeconds) * 1000, late);
        clean.push(() => timer.cancel());
      }
      if (command.length === 0) reject(cannotStart(container, "args must not be empty"));
      else process.start();
    });
    return { stdout: Buffer.from(output.stdout), stderr: Buffer.from(output.stderr), exitCode };
  } finally {
    for (const undo of clean) undo();
  }
}

function behaviourOfExec({ container, command, answer, unknownPrograms }: Exec) {
  if (answer !== undefined) {
    const { stdout = "", stderr = "", exitCode = 0, afterMs = 0 } = answer;
    return [
      afterMs === "forever" ? ({ do: "sleepForever" } as const) : ({ do: "sleep", ms: afterMs } as const),
      { do: "print", stream: "stdout", text: stdout } as const,
      { do: "print", stream: "stderr", text: stderr } as const,
      { do: "exit", code: exitCode } as const,
    ];
  }
  const behaviour = behaviourOf(command, "failToStart");
  if (behaviour.type === "runs") return behaviour.steps;
  // Where programs are taken on trust, a command nobody described is taken to succeed.
  if (unknownPrograms === "runForever") return [];
  const [program = ""] = command;
  throw cannotStart(container, `unable to start container process: exec: "${program}": ${commandNotFound(program)}`);
}

function cannotStart({ id }: ContainerRecord, why: string): CriError {
  return failed("Unknown", `failed to start exec "${id}": OCI runtime exec failed: exec failed: ${why}: unknown`);
}
