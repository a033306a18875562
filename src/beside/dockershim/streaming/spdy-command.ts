import type { Duplex } from "node:stream";
import { type Clock, waitFor, withDeadline } from "../../../ground/base/index.ts";
import { type ServedStream, SpdySession } from "../../../ground/spdy/index.ts";
import { type CommandOutcome, plainStatusOf, type RemoteCommand, statusOf } from "./remote-command.ts";
import type { CommandStreamsAsked } from "./stream-requests.ts";

/** Newest first; the empty one is what the oldest clients ask for by saying nothing. */
export const spdyCommandProtocols = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
const streamsWithinMs = 30_000;
/** A client that has heard the end closes; one that does not is left. */
const goodbyeMs = 10_000;

/** Waits for the streams that a client opens for a command. */
export async function openSpdyCommand(
  socket: Duplex,
  asked: CommandStreamsAsked,
  protocol: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<RemoteCommand> {
  const streams = new Map<string, ServedStream>();
  const wanted = wantedStreams(asked, protocol);
  let check = (): void => {};
  const session = new SpdySession(socket, (stream) => {
    const type = stream.headers.get("streamtype") ?? "";
    if (!wanted.has(type) || streams.has(type)) return void session.reset(stream.id).catch(() => {});
    streams.set(type, stream);
    check();
  });
  try {
    const late = (): Error => new Error("timed out waiting for client to create streams");
    await withDeadline(clock, streamsWithinMs, late, signal, (bounded) =>
      waitFor(bounded, (done, fail) => {
        check = () => {
          if (streams.size === wanted.size) done();
        };
        void session.closed.then(() => fail(new Error("the client left before it had created its streams")));
        check();
        return () => {};
      }),
    );
  } catch (error) {
    session[Symbol.dispose]();
    throw error;
  }
  return {
    stdin: streams.get("stdin"),
    stdout: streams.get("stdout"),
    stderr: streams.get("stderr"),
    resize: streams.get("resize"),
    closed: session.closed,
    finish: (outcome) => finish(session, streams, protocol, outcome, clock, signal),
  };
}

function wantedStreams({ tty, stdin, stdout, stderr }: CommandStreamsAsked, protocol: string): ReadonlySet<string> {
  const hasSizes = tty && /^v[34]\./.test(protocol);
  const all = { error: true, stdin, stdout, stderr: stderr && !tty, resize: hasSizes };
  return new Set(Object.entries(all).flatMap(([name, isWanted]) => (isWanted ? [name] : [])));
}

async function finish(
  session: SpdySession,
  streams: ReadonlyMap<string, ServedStream>,
  protocol: string,
  outcome: CommandOutcome,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  try {
    for (const name of ["stdout", "stderr"]) streams.get(name)?.end();
    const text = protocol.startsWith("v4.") ? JSON.stringify(statusOf(outcome)) : plainStatusOf(outcome);
    streams.get("error")?.end(text);
    const over = new Error("the client did not close");
    await withDeadline(
      clock,
      goodbyeMs,
      () => over,
      signal,
      (bounded) =>
        waitFor(bounded, (done) => {
          void session.closed.then(() => done());
          return () => {};
        }),
    ).catch(() => {});
  } finally {
    session[Symbol.dispose]();
  }
}
