import { type ClientHttp2Stream, connect } from "node:http2";
import type { TLSSocket } from "node:tls";
import { destroySession, onAbort } from "../../../ground/base/index.ts";
import type { RequestHeaders } from "./headers.ts";
import { type HttpReply, TransportError } from "./reply.ts";
import { type HttpUrl, joinHostPort } from "./url.ts";

// HTTP/2 knows no such headers and Node refuses to send them.
const hopByHop = new Set(["connection", "upgrade", "http2-settings", "keep-alive", "proxy-connection", "te"]);

/**
 * How many answers that are not yet the answer (1xx) a server may send: there is one or two where there is any, each is
 * taken apart on the event loop, and without a bound there is no end to them.
 */
const mostInformational = 10;

/** Sends one GET over a TLS connection whose server chose HTTP/2. */
export function sendHttp2(
  socket: TLSSocket,
  url: HttpUrl,
  headers: RequestHeaders,
  signal: AbortSignal,
): Promise<HttpReply> {
  const session = connect(`https://${joinHostPort(url.hostname, url.port)}`, {
    createConnection: () => socket,
    // Nobody would read what a server pushes.
    settings: { enablePush: false },
  });
  // Without a prototype, as the names are the user's.
  const fields: Record<string, string[]> = Object.create(null);
  for (const [name, value] of headers.fields) {
    const key = name.toLowerCase();
    if (hopByHop.has(key)) continue;
    const values = fields[key];
    if (values === undefined) fields[key] = [value];
    else values.push(value);
  }
  return new Promise((resolve, reject) => {
    const aborting = onAbort(signal, () => {
      reject(signal.reason);
      destroySession(session, socket);
    });
    const fail = (error: unknown): void => {
      aborting[Symbol.dispose]();
      destroySession(session, socket);
      reject(new TransportError(error instanceof Error ? error.message : String(error), error));
    };
    session.on("error", fail);
    let stream: ClientHttp2Stream;
    try {
      stream = session.request(
        {
          ...fields,
          ":method": "GET",
          ":path": url.target,
          ":authority": headers.host ?? joinHostPort(url.hostname, url.port),
        },
        { endStream: true },
      );
    } catch (error) {
      // What Node will not send leaves the connection open.
      fail(error);
      return;
    }
    let informational = 0;
    stream.on("headers", () => {
      informational++;
      if (informational === mostInformational + 1) fail(new Error("http2: too many 1xx informational responses"));
    });
    stream.on("error", fail);
    stream.on("close", () => fail(new Error("EOF")));
    stream.on("response", (head) => {
      aborting[Symbol.dispose]();
      resolve({
        status: head[":status"] ?? 0,
        location: head.location,
        body: stream,
        close: () => destroySession(session, socket),
      });
    });
  });
}
