import type { Duplex } from "node:stream";
import { finished } from "node:stream/promises";
import { allEnded, waitFor } from "../../../ground/base/index.ts";
import { type ServedStream, SpdySession } from "../../../ground/spdy/index.ts";
import type { ShimContext } from "../service/context.ts";
import { dialPod, forwardingFailed, splice } from "./pod-port.ts";

export const portForwardProtocol = "portforward.k8s.io";

interface Pair {
  data?: ServedStream;
  error?: ServedStream;
}

/** A client opens two streams for each connection: one for its bytes, one for what goes wrong. */
const mostPairs = 500;

/** Carries connections of a client to ports of a pod until the client leaves. */
export async function forwardPorts(
  context: ShimContext,
  sandboxId: string,
  socket: Duplex,
  signal: AbortSignal,
): Promise<void> {
  const pairs = new Map<string, Pair>();
  const session = new SpdySession(socket, (stream) => {
    const { headers } = stream;
    const port = Number(headers.get("port"));
    const type = headers.get("streamtype");
    if (!Number.isInteger(port) || port < 1 || port > 65_535 || (type !== "data" && type !== "error")) {
      return void session.reset(stream.id).catch(() => {});
    }
    // The oldest clients number nothing, and open the stream for errors just before the other one.
    const key = headers.get("requestid") ?? `${port}/${type === "error" ? stream.id : stream.id - 2}`;
    const pair = pairs.get(key) ?? {};
    if (pair[type] !== undefined || pairs.size >= mostPairs) return void session.reset(stream.id).catch(() => {});
    pair[type] = stream;
    pairs.set(key, pair);
    const { data, error } = pair;
    if (data === undefined || error === undefined) return;
    error.resume();
    void forward(context, sandboxId, port, { data, error, session }, signal).finally(() => pairs.delete(key));
  });
  try {
    await waitFor(signal, (done) => {
      void session.closed.then(() => done());
      return () => {};
    });
  } finally {
    session[Symbol.dispose]();
  }
}

async function forward(
  context: ShimContext,
  sandboxId: string,
  port: number,
  {
    data,
    error,
    session,
  }: { readonly data: ServedStream; readonly error: ServedStream; readonly session: SpdySession },
  signal: AbortSignal,
): Promise<void> {
  try {
    const target = await dialPod(context, sandboxId, port, signal);
    await splice(data, target);
    error.end();
  } catch (problem) {
    error.end(forwardingFailed(sandboxId, port, problem));
    data.end();
  }
  // A session may see any number of connections come and go: none is kept once it is over.
  await allEnded([finished(data, { readable: false }), finished(error, { readable: false })]);
  session.release(data);
  session.release(error);
}
