import { type Duplex, PassThrough, Writable } from "node:stream";
import type { Clock } from "../../../ground/base/index.ts";
import { plainStatusOf, type RemoteCommand, statusOf } from "./remote-command.ts";
import type { CommandStreamsAsked } from "./stream-requests.ts";
import { ChannelConnection } from "./web-socket-channels.ts";

/** Newest first. Those with base64 carry text. */
export const webSocketProtocols = [
  ...["v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"],
  ...["base64.channel.k8s.io", "channel.k8s.io"],
];

const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** The streams of a command as channels of one WebSocket. */
export function openWebSocketCommand(
  socket: Duplex,
  asked: CommandStreamsAsked,
  protocol: string,
  clock: Clock,
  signal: AbortSignal,
): RemoteCommand {
  const stdin = new PassThrough();
  const resize = new PassThrough();
  /** Whether more may come; what nobody reads any more holds nothing back. */
  const heard = (stream: PassThrough, bytes: Buffer): boolean =>
    stream.writableEnded || stream.destroyed || stream.write(bytes);
  const connection = new ChannelConnection(socket, protocol, clock, (channel, bytes) => {
    if (channel === channels.stdin && asked.stdin) return heard(stdin, bytes);
    if (channel === channels.resize && asked.tty) return heard(resize, bytes);
    // From the fifth version on a client can say that a stream has ended.
    if (channel === channels.close && protocol.startsWith("v5.") && bytes[0] === channels.stdin) stdin.end();
    return true;
  });
  for (const stream of [stdin, resize]) {
    stream.on("drain", () => connection.resume()).on("close", () => connection.resume());
  }
  void connection.closed.then(() => {
    stdin.end();
    resize.end();
  });
  const sink = (channel: number): Writable =>
    new Writable({
      write: (chunk: Buffer, _, done) => void connection.send(channel, chunk).then(() => done(), done),
    });
  return {
    stdin: asked.stdin ? stdin : undefined,
    stdout: asked.stdout ? sink(channels.stdout) : undefined,
    stderr: asked.stderr ? sink(channels.stderr) : undefined,
    resize: asked.tty ? resize : undefined,
    closed: connection.closed,
    async finish(outcome) {
      const hasStatus = protocol.startsWith("v4.") || protocol.startsWith("v5.");
      const text = hasStatus ? JSON.stringify(statusOf(outcome)) : plainStatusOf(outcome);
      const last = text === "" ? undefined : { channel: channels.error, content: Buffer.from(text) };
      await connection.finish(last, signal);
    },
  };
}
