import { onAbort } from "../../ground/base/index.ts";
import type { Pod } from "../../ground/model/index.ts";
import type { SpdyConnection, SpdyStream } from "../../ground/spdy/index.ts";
import { defineCommand } from "./define-command.ts";
import { exitCodeOf } from "./exit-code.ts";
import { type CommandIo, type UserInput, writeThrough } from "./io.ts";
import type { InContainer } from "./local-client.ts";
import { podRef } from "./pod-ref.ts";
import { askAgent } from "./running-agent.ts";
import { execDescription } from "./table/pod-commands.ts";
import { visibleLine } from "./visible-text.ts";
import { whichContainer } from "./which-container.ts";

/** Runs a command in a container; its exit code is ours. */
export const execCommand = defineCommand(execDescription, async ({ options, operands: [ref = ""], rest }, io) => {
  const input = io.input();
  const tty = options.tty && input.isTTY && io.isTTY;
  if (options.tty && !tty) io.stderr.write("nodelet: no terminal for the command, for there is none here\n");
  const query = new URLSearchParams();
  for (const word of rest) query.append("command", word);
  query.set("output", "1");
  query.set(tty ? "tty" : "error", "1");
  if (options.stdin) query.set("input", "1");
  return await askAgent(io, options, async (client) => {
    const pod = await client.pod(podRef(ref, options.namespace), io.signal);
    const where = whichContainer(pod, options.container, io);
    using connection = await client.exec(where, query, io.signal).catch((error: unknown) => {
      throw notRunning(pod, where) ?? error;
    });
    return await run(connection, { input: options.stdin ? input : undefined, tty }, io);
  });
});

/** Where the container does not run that is the reason, whatever the runtime says about it. */
function notRunning({ status }: Pod, { namespace, pod, container }: InContainer): Error | undefined {
  const all = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  const { state } = all.find(({ name }) => name === container) ?? {};
  if (state === undefined || state.running !== undefined) return undefined;
  const reason = state.waiting?.reason ?? state.terminated?.reason;
  const why = reason === undefined ? "" : ` (${visibleLine(reason)})`;
  return new Error(
    `container ${visibleLine(container)} of ${namespace}/${pod} does not run${why}; "nodelet why ${namespace}/${pod}" says more`,
  );
}

interface Wanted {
  readonly input: UserInput | undefined;
  readonly tty: boolean;
}

/** Opens the streams in the order of kubectl and passes bytes until the command has ended. */
async function run(connection: SpdyConnection, { input, tty }: Wanted, io: CommandIo): Promise<number> {
  const open = (streamtype: string): Promise<SpdyStream> => connection.stream({ streamtype });
  const status = await open("error");
  const stdin = input === undefined ? undefined : await open("stdin");
  const stdout = await open("stdout");
  stdout.onData = (chunk) => writeThrough(io.stdout, chunk);
  const stderr = tty ? undefined : await open("stderr");
  if (stderr !== undefined) stderr.onData = (chunk) => writeThrough(io.stderr, chunk);
  const resize = tty ? await open("resize") : undefined;
  const over = new AbortController();
  using _ = onAbort(io.signal, () => void connection.socket.destroy());
  const stopResizing = resize === undefined ? undefined : followSize(resize, input, io);
  try {
    if (tty) input?.setRaw(true);
    const typed = stdin === undefined || input === undefined ? undefined : passInput(input, stdin, tty, over.signal);
    const ended = Promise.all([stdout.ended, stderr?.ended, status.ended]).finally(() => over.abort());
    // An input that can't be read ends it all: the command might wait for more of it for ever.
    await Promise.all([ended, typed]);
    io.signal.throwIfAborted();
    return exitCodeOf(status.text);
  } finally {
    over.abort();
    if (tty) input?.setRaw(false);
    stopResizing?.();
  }
}

/** Keeps the terminal in the container as large as the user's. */
function followSize(resize: SpdyStream, input: UserInput | undefined, io: CommandIo): (() => void) | undefined {
  const tell = (): void => {
    const { columns, rows } = io.terminal();
    void resize.write(JSON.stringify({ Width: columns, Height: rows }));
  };
  tell();
  return input?.onResize(tell);
}

async function passInput(input: UserInput, stdin: SpdyStream, tty: boolean, signal: AbortSignal): Promise<void> {
  try {
    for await (const chunk of input.read(signal)) await stdin.write(Buffer.from(chunk));
    // To a terminal, an end of the input would be the end of the terminal, with what is still to be shown on it.
    if (!tty) await stdin.end();
  } catch (error) {
    // The command has ended before what it might have read.
    if (!signal.aborted) throw error;
  }
}
