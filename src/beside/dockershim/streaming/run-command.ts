import type { Duplex } from "node:stream";
import { type Clock, LinkedSignal, messageOf, TaskScope } from "../../../ground/base/index.ts";
import { FrameReader, type TerminalSize } from "../engine/index.ts";
import type { ShimContext } from "../service/context.ts";
import { endExec, exitOf } from "../service/exec-sync.ts";
import { type CommandOutcome, type RemoteCommand, sizesIn } from "./remote-command.ts";
import type { StreamRequest } from "./stream-requests.ts";

type ExecRequest = Extract<StreamRequest, { type: "exec" }>;
type AttachRequest = Extract<StreamRequest, { type: "attach" }>;

/** Runs a command in a container with the client at its streams, and tells the client how it ended. */
export async function runExec(
  context: ShimContext,
  request: ExecRequest,
  remote: RemoteCommand,
  signal: AbortSignal,
): Promise<void> {
  const { engine } = context;
  let execId: string | undefined;
  let isCutOff = false;
  let outcome: CommandOutcome;
  try {
    execId = await engine.createExec(request.containerId, request, signal);
    const id = execId;
    const stream = await engine.startExec(id, request.tty, signal);
    const said = await carry(context.clock, remote, stream, request, (size) => engine.resizeExec(id, size, signal));
    const exec = await unlessLeft(remote, (leaving) => exitOf(context, id, leaving), signal);
    const isUnstarted = exec.pid === 0 && exec.exitCode !== 0;
    outcome = isUnstarted
      ? { type: "failed", message: `error executing command in container: failed to exec in container: ${said.trim()}` }
      : { type: "exit", code: exec.exitCode };
  } catch (error) {
    outcome = { type: "failed", message: `error executing command in container: ${messageOf(error)}` };
    isCutOff = true;
  }
  try {
    await remote.finish(outcome);
  } finally {
    // A client that left takes its command along: nobody else could end it.
    if (isCutOff && execId !== undefined) await endExec(context, execId).catch(() => {});
  }
}

/** Work that a client waits for, and that ends when it leaves. */
async function unlessLeft<Result>(
  { closed }: RemoteCommand,
  work: (signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  using leaving = new LinkedSignal(signal);
  void closed.then(() => leaving.abort(new Error("the client has left")));
  return await work(leaving.signal);
}

export async function runAttach(
  context: ShimContext,
  request: AttachRequest,
  remote: RemoteCommand,
  signal: AbortSignal,
): Promise<void> {
  const { engine } = context;
  let outcome: CommandOutcome;
  try {
    const stream = await engine.attach(request.containerId, request, signal);
    await carry(context.clock, remote, stream, request, (size) =>
      engine.resizeContainer(request.containerId, size, signal),
    );
    outcome = { type: "done" };
  } catch (error) {
    outcome = { type: "failed", message: `error attaching to container: ${messageOf(error)}` };
  }
  await remote.finish(outcome);
}

/** How much of the output is kept to say why a command could not be started. */
const keptBytes = 4096;
const resizeAttempts = 20;
const resizeAgainMs = 50;
/** One that comes while the terminal is being made is taken, and lost. */
const resizeOnceMoreMs = [100, 400, 1_500];

/**
 * Carries bytes both ways until the container's side ends, with no more in between than the pipes hold. Resolves with
 * the beginning of what was said. A client that leaves ends it.
 */
async function carry(
  clock: Clock,
  remote: RemoteCommand,
  stream: Duplex,
  { tty }: { readonly tty: boolean },
  resize: (size: TerminalSize) => Promise<void>,
): Promise<string> {
  await using scope = new TaskScope();
  let hasClientLeft = false;
  void remote.closed.then(() => {
    hasClientLeft = true;
    stream.destroy();
  });
  stream.on("error", () => {});
  const { stdin, resize: sizes } = remote;
  if (stdin !== undefined) {
    stdin.pipe(stream, { end: true });
    stdin.on("error", () => stream.end());
  }
  if (sizes !== undefined) {
    scope.spawn("sizes of the terminal", async () => {
      let latest: TerminalSize | undefined;
      for await (const size of sizesIn(sizes)) {
        latest = size;
        await resized(resize, size, clock, scope.signal);
        scope.spawn("the size once more", async (signal) => {
          for (const ms of resizeOnceMoreMs) {
            await clock.sleep(ms, signal);
            if (latest === size) await resize(size).catch(() => {});
          }
        });
      }
    });
  }
  let said = "";
  try {
    const frames = new FrameReader();
    for await (const chunk of stream) {
      const parts = tty ? [{ stream: "stdout" as const, content: chunk as Buffer }] : frames.push(chunk as Buffer);
      for (const { stream: name, content } of parts) {
        if (said.length < keptBytes) said += content.toString("utf8", 0, keptBytes);
        const sink = name === "stderr" ? remote.stderr : remote.stdout;
        if (sink !== undefined && !sink.destroyed && !sink.write(content)) await drained(sink);
      }
    }
  } catch (error) {
    if (!hasClientLeft) throw error;
  } finally {
    // What the client still says is for nobody, and must not keep us from seeing it leave.
    stdin?.unpipe(stream).resume();
    sizes?.destroy();
    stream.destroy();
  }
  if (hasClientLeft) throw new Error("the client has left");
  return said;
}

/** A command that is just being started has no terminal yet. */
async function resized(
  resize: (size: TerminalSize) => Promise<void>,
  size: TerminalSize,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 0; attempt < resizeAttempts; attempt++) {
    try {
      return await resize(size);
    } catch {
      await clock.sleep(resizeAgainMs, signal);
    }
  }
}

async function drained(sink: {
  once(event: string, act: () => void): unknown;
  off(event: string, act: () => void): unknown;
}): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      sink.off("drain", done);
      sink.off("close", done);
      resolve();
    };
    sink.once("drain", done);
    sink.once("close", done);
  });
}
