import { readFile } from "node:fs/promises";
import { kill } from "node:process";
import type { Duplex } from "node:stream";
import { CriError, type ExecSyncResponse } from "../../../connections/cri/index.ts";
import { cutBytes, hasCode, messageOf, unlessAborted, waitFor, withDeadline } from "../../../ground/base/index.ts";
import { type EngineExec, EngineUnavailable, FrameReader } from "../engine/index.ts";
import type { ShimContext } from "./context.ts";
import { failure } from "./failures.ts";

/** What either stream may hold; the rest is read and thrown away, for the command must not stand still. */
const longestOutput = 16 * 1024 * 1024;
/** Docker knows the code a moment after the process has gone. */
const codeWithinMs = 10_000;
const lookAgainMs = 20;
const longestLookAgainMs = 1_000;
/** How long an answer about a command that ran out of time waits for the end of its process. */
const endedWithinMs = 2_000;
/** On a busy node Docker takes its time from the call to the process. */
const beginsWithinMs = 60_000;

type ExecPorts = Pick<ShimContext, "engine" | "clock" | "log" | "signal">;

/**
 * Runs a command in a container and waits for its end; without a timeout as long as the caller does. `find` tells which
 * container it is, and whether it runs: that takes its part of the time too.
 */
export async function execInContainer(
  ports: ExecPorts,
  find: (signal: AbortSignal) => Promise<string>,
  cmd: readonly string[],
  timeoutSeconds: bigint,
  signal: AbortSignal,
): Promise<ExecSyncResponse> {
  if (cmd.length === 0) throw failedExec("args must not be empty");
  const { engine, clock } = ports;
  const output = { stdout: new Output(), stderr: new Output() };
  const late = new CriError(
    "DeadlineExceeded",
    "execSync",
    `failed to exec in container: timeout ${timeoutSeconds}s exceeded: context deadline exceeded`,
  );
  const streams = { tty: false, stdin: false, stdout: true, stderr: true };
  let execId: string | undefined;
  const run = async (bounded: AbortSignal): Promise<number> => {
    const containerId = await find(bounded);
    execId = await engine.createExec(containerId, { cmd, ...streams }, bounded);
    return await runExec(ports, execId, output, bounded);
  };
  try {
    const exitCode =
      timeoutSeconds > 0n
        ? await withDeadline(clock, Number(timeoutSeconds) * 1000, () => late, signal, run)
        : await run(signal);
    return { stdout: output.stdout.bytes, stderr: output.stderr.bytes, exitCode };
  } catch (error) {
    // Docker would let it run on, and probes that hang would pile up.
    const isLeft = error === late || signal.aborted || error instanceof EngineUnavailable;
    if (execId !== undefined && isLeft) await endExecSoon(ports, execId);
    throw failure("execSync", error, "failed to exec in container");
  }
}

async function runExec(
  { engine, clock }: ExecPorts,
  execId: string,
  output: { readonly stdout: Output; readonly stderr: Output },
  signal: AbortSignal,
): Promise<number> {
  const stream = await engine.startExec(execId, false, signal);
  await drain(stream, output, signal);
  const exec = await exitOf({ engine, clock }, execId, signal);
  // It has no process when it could not be started; what went wrong is in its output.
  if (exec.pid === 0 && exec.exitCode !== 0) {
    const said = cutBytes(Buffer.concat([output.stdout.bytes, output.stderr.bytes]), 4096).trim();
    throw failedExec(`failed to start exec "${execId}": ${said}`);
  }
  return exec.exitCode;
}

async function drain(
  stream: Duplex,
  output: { readonly stdout: Output; readonly stderr: Output },
  signal: AbortSignal,
): Promise<void> {
  const frames = new FrameReader();
  try {
    await waitFor(signal, (done, fail) => {
      stream.on("data", (chunk: Buffer) => {
        try {
          for (const { stream: name, content } of frames.push(chunk))
            output[name === "stderr" ? "stderr" : "stdout"].add(content);
        } catch (error) {
          fail(error);
        }
      });
      stream.once("end", done);
      stream.once("close", done);
      stream.once("error", (error) => fail(new EngineUnavailable("docker broke off the output", error)));
      return () => stream.removeAllListeners("data");
    });
  } finally {
    stream.on("error", () => {});
    stream.destroy();
  }
}

/** How a command ended. Its output has before: a command may close it and go on for as long as it likes. */
export async function exitOf(
  { engine, clock }: Pick<ExecPorts, "engine" | "clock">,
  execId: string,
  signal: AbortSignal,
): Promise<EngineExec> {
  let goneAt: number | undefined;
  for (let waitMs = lookAgainMs; ; waitMs = Math.min(2 * waitMs, longestLookAgainMs)) {
    const exec = await engine.inspectExec(execId, signal);
    if (!exec.running) return exec;
    goneAt = (await hasProcess(exec)) ? undefined : (goneAt ?? clock.monotonic());
    if (goneAt !== undefined && clock.monotonic() - goneAt > codeWithinMs) {
      throw new EngineUnavailable("docker does not tell how the command ended");
    }
    await clock.sleep(waitMs, signal);
  }
}

/** The number of its process is the node's; whether it still is that process, its cgroup tells. */
async function hasProcess({ pid, containerId }: EngineExec): Promise<boolean> {
  if (pid <= 0) return false;
  const cgroups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => undefined);
  return cgroups?.includes(containerId) ?? false;
}

/** As endExec, but a Docker that does not answer keeps nobody waiting for long. */
async function endExecSoon(ports: ExecPorts, execId: string): Promise<void> {
  const late = (): Error => new Error("docker does not answer");
  await withDeadline(ports.clock, endedWithinMs, late, ports.signal, (bounded) =>
    unlessAborted(endExec(ports, execId), bounded),
  ).catch(() => {});
}

/** Kills the command's process. */
export async function endExec(ports: ExecPorts, execId: string): Promise<void> {
  const { log, signal } = ports;
  const exec = await begunExec(ports, execId, signal);
  if (!exec.running || !(await hasProcess(exec))) return;
  try {
    kill(exec.pid, "SIGKILL");
  } catch (error) {
    if (!hasCode(error, "ESRCH")) log.warn("cannot end a command in a container", { error: messageOf(error) });
  }
}

/** One that was given up while Docker was starting it, which it calls running, has no process yet, but may have one soon. */
async function begunExec({ engine, clock }: ExecPorts, execId: string, signal: AbortSignal) {
  const deadline = clock.monotonic() + beginsWithinMs;
  for (let waitMs = lookAgainMs; ; waitMs = Math.min(2 * waitMs, longestLookAgainMs)) {
    const exec = await engine.inspectExec(execId, signal);
    const isWaiting = exec.pid === 0 && exec.exitCode === 0;
    if (!isWaiting || clock.monotonic() > deadline) return exec;
    await clock.sleep(waitMs, signal);
  }
}

function failedExec(what: string): CriError {
  return new CriError("Unknown", "execSync", `failed to exec in container: ${what}`);
}

class Output {
  readonly #chunks: Buffer[] = [];
  #left = longestOutput;

  add(chunk: Buffer): void {
    const kept = chunk.subarray(0, this.#left);
    if (kept.length > 0) this.#chunks.push(kept);
    this.#left -= kept.length;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
