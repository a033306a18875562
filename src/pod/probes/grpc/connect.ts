import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectTcp } from "node:net";
import { type Clock, destroySession, onAbort } from "../../../ground/base/index.ts";
import { dialErrorText, isOwnLack } from "../http/dial-errors.ts";
import { joinHostPort } from "../http/url.ts";

const firstRetryMs = 100;
const longestRetryMs = 1_000;

export interface ReadyConnection extends Disposable {
  readonly session: ClientHttp2Session;
}

/**
 * A plain HTTP/2 connection whose server has said hello. One that fails is tried again until the signal fires: the
 * server may be about to listen. Throws where the node has not what it takes to connect.
 *
 * Written on node:http2 as grpc-js cannot give up a connection attempt: closing its client leaves the socket to the
 * kernel's timeout of two minutes, and with a probe every second these would pile up.
 */
export async function connectUntilReady(
  host: string,
  port: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<ReadyConnection> {
  for (let waitMs = firstRetryMs; ; waitMs = Math.min(waitMs * 2, longestRetryMs)) {
    signal.throwIfAborted();
    const connection = await connectOnce(host, port, signal);
    if (connection !== undefined) return connection;
    await clock.sleep(waitMs, signal);
  }
}

function connectOnce(host: string, port: number, signal: AbortSignal): Promise<ReadyConnection | undefined> {
  const socket = connectTcp({ host, port, noDelay: true });
  const session = connectHttp2(`http://${joinHostPort(host, port)}`, { createConnection: () => socket });
  const destroy = (): void => destroySession(session, socket);
  return new Promise((resolve, reject) => {
    const aborting = onAbort(signal, () => {
      reject(signal.reason);
      destroy();
    });
    const finish = (result: ReadyConnection | undefined): void => {
      aborting[Symbol.dispose]();
      resolve(result);
    };
    // Both stay attached: whoever uses the session sees its end on the stream, and an error must not end the process.
    session.on("error", (error) => {
      if (isOwnLack(host, error)) {
        aborting[Symbol.dispose]();
        reject(new Error(dialErrorText(host, port, error), { cause: error }));
      }
      destroy();
    });
    session.on("close", () => finish(undefined));
    session.once("remoteSettings", () => finish({ session, [Symbol.dispose]: destroy }));
  });
}
