import { Duplex } from "node:stream";
import { finished } from "node:stream/promises";
import { allEnded, mapAtMost, onAbort } from "../../../ground/base/index.ts";
import type { ShimContext } from "../service/context.ts";
import { dialPod, forwardingFailed, splice } from "./pod-port.ts";
import { ChannelConnection } from "./web-socket-channels.ts";

/** The last one is for clients that ask for none. */
export const webSocketPortProtocols = ["v4.base64.channel.k8s.io", "v4.channel.k8s.io"];
/** A channel has one byte for its number, and in the form of text a single character. */
const mostPorts = 32;

/** What is wrong with ports for one WebSocket; undefined: nothing. */
export function portsProblem(ports: readonly number[]): string | undefined {
  if (ports.length === 0) return 'query parameter "port" is required';
  if (ports.length > mostPorts) return `more than ${mostPorts} ports over one WebSocket`;
  const wrong = ports.find((port) => !Number.isInteger(port) || port < 1 || port > 65_535);
  return wrong === undefined ? undefined : `invalid port ${wrong}`;
}

/** One connection to each port, two channels each: bytes, and what went wrong. Over when all have ended. */
export async function forwardWebSocketPorts(
  context: ShimContext,
  { podSandboxId, ports }: { readonly podSandboxId: string; readonly ports: readonly number[] },
  socket: Duplex,
  protocol: string,
  signal: AbortSignal,
): Promise<void> {
  const streams: ChannelStream[] = [];
  const connection = new ChannelConnection(socket, protocol, context.clock, (channel, bytes) => {
    // What is said on the channels for errors is for nobody.
    if (channel % 2 === 0) streams[channel / 2]?.heard(bytes);
    return !streams.some(({ isFull }) => isFull);
  });
  const resume = (): void => {
    if (!streams.some(({ isFull }) => isFull)) connection.resume();
  };
  for (const [index, port] of ports.entries()) streams.push(new ChannelStream(2 * index, port, connection, resume));
  void connection.closed.then(() => {
    for (const stream of streams) stream.destroy();
  });
  using _ = onAbort(signal, () => void socket.destroy());
  await mapAtMost(mostPorts, streams, (stream) => forward(context, podSandboxId, stream, connection, signal));
  await connection.finish(undefined, signal);
}

async function forward(
  context: ShimContext,
  sandboxId: string,
  stream: ChannelStream,
  connection: ChannelConnection,
  signal: AbortSignal,
): Promise<void> {
  const { port } = stream;
  const errors = stream.channel + 1;
  const named = Buffer.alloc(2);
  named.writeUInt16LE(port, 0);
  for (const channel of [stream.channel, errors]) await connection.send(channel, named);
  try {
    const target = await dialPod(context, sandboxId, port, signal);
    // A client has no way to end its half: it is over when the server's is.
    target.once("end", () => stream.leave());
    await splice(stream, target);
    // Before the connection is closed, what the pod said last is on its way.
    await allEnded([finished(stream, { readable: false })]);
  } catch (problem) {
    stream.resume();
    await connection.send(errors, Buffer.from(forwardingFailed(sandboxId, port, problem)));
  }
}

/** One channel for bytes. What is not read holds the whole connection back. */
class ChannelStream extends Duplex {
  readonly channel: number;
  readonly port: number;
  readonly #connection: ChannelConnection;
  readonly #onRead: () => void;
  #isFull = false;
  #hasLeft = false;

  constructor(channel: number, port: number, connection: ChannelConnection, onRead: () => void) {
    super({ allowHalfOpen: true, autoDestroy: false });
    this.channel = channel;
    this.port = port;
    this.#connection = connection;
    this.#onRead = onRead;
    this.on("error", () => {});
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  heard(bytes: Buffer): void {
    if (!this.#hasLeft && !this.destroyed && bytes.length > 0) this.#isFull = !this.push(bytes);
  }

  /** Nothing more will be said. */
  leave(): void {
    if (this.#hasLeft || this.destroyed) return;
    this.#hasLeft = true;
    this.#isFull = false;
    this.push(null);
    this.#onRead();
  }

  override _read(): void {
    this.#isFull = false;
    this.#onRead();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    void this.#connection.send(this.channel, chunk).then(() => done(), done);
  }
}
