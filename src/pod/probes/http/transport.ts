import { type ClientRequest, request as startRequest } from "node:http";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { Readable } from "node:stream";
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { codeOf, goQuote, loadedPart, messageOf, onAbort } from "../../../ground/base/index.ts";
import {
  brokenConnectionText,
  type ConnectionEnds,
  dialErrorText,
  isPlainHttpAnswer,
  tlsErrorText,
} from "./dial-errors.ts";
import { hasRepeatedSingle, headerProblem, type RequestHeaders } from "./headers.ts";
import { hostNames } from "./lookup.ts";
import { type HttpReply, TransportError } from "./reply.ts";
import { type HttpUrl, joinHostPort } from "./url.ts";

// Go's client takes headers of this size where Node's default of 16 KiB would refuse.
const maxHeaderBytes = 1024 * 1024;

/**
 * Sends one GET on a connection of its own and resolves with the head of the answer. Rejects with a TransportError, or
 * with the signal's reason. Certificates are not verified: a probe asks whether the container answers, not who it is.
 *
 * Upstream sets SO_LINGER to 1 s to shorten TIME_WAIT; Node offers no way to set it short of resetting the connection,
 * which servers would log as an error. As we ask for `Connection: close`, servers usually close first and keep the
 * TIME_WAIT on their side.
 */
export async function sendGet(url: HttpUrl, headers: RequestHeaders, signal: AbortSignal): Promise<HttpReply> {
  signal.throwIfAborted();
  const problem = headerProblem(headers);
  if (problem !== undefined) throw new TransportError(problem, undefined);
  if (url.scheme === "http") {
    return sendHttp1(connectTcp(socketOptions(url, signal)), url, headers, signal, brokenConnectionText);
  }
  const socket = await secureConnection(url, hasRepeatedSingle(headers) ? ["http/1.1"] : ["h2", "http/1.1"], signal);
  if (socket.alpnProtocol !== "h2") return sendHttp1(socket, url, headers, signal, tlsErrorText);
  const { sendHttp2 } = await loadedPart(import("./http2.ts"));
  if (signal.aborted) socket.destroy();
  signal.throwIfAborted();
  return sendHttp2(socket, url, headers, signal);
}

function socketOptions(url: HttpUrl, signal: AbortSignal) {
  return { host: url.hostname, port: url.port, noDelay: true, lookup: hostNames.lookupUntil(signal) };
}

type DescribeBreak = (error: unknown, ends: ConnectionEnds | undefined) => string;

function sendHttp1(
  socket: Socket,
  url: HttpUrl,
  headers: RequestHeaders,
  signal: AbortSignal,
  describeBreak: DescribeBreak,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    let ends = endsOf(socket);
    let request: ClientRequest;
    let aborting: Disposable | undefined;
    const fail = (error: unknown): void => {
      aborting?.[Symbol.dispose]();
      if (isMalformed(error)) reject(new TransportError(malformedText(error), error));
      else if (ends === undefined) {
        reject(new TransportError(dialErrorText(url.hostname, url.port, error), error));
      } else reject(new TransportError(describeBreak(error, ends), error));
    };
    const close = (): void => {
      request.destroy();
      // An answer that switches protocols has taken its connection from the request.
      socket.destroy();
    };
    const answered = (status: number, location: string | undefined, body: Readable): void => {
      aborting?.[Symbol.dispose]();
      resolve({ status, location, body, close });
    };
    // A server that switches protocols gets the socket without the request's listeners; its reset must end nothing.
    socket.on("error", () => {});
    socket.once("connect", () => {
      ends = endsOf(socket);
    });
    try {
      request = startRequest({
        method: "GET",
        path: url.target,
        headers: ["Host", headers.host ?? joinHostPort(url.hostname, url.port), ...headers.fields.flat()],
        createConnection: () => socket,
        // Go accepts sloppier answers than Node does, and a probe reads nothing but the status.
        insecureHTTPParser: true,
        maxHeaderSize: maxHeaderBytes,
      });
    } catch (error) {
      socket.destroy();
      reject(new TransportError(messageOf(error), error));
      return;
    }
    request.on("error", fail);
    aborting = onAbort(signal, () => {
      reject(signal.reason);
      request.destroy();
    });
    request.on("response", (response) => answered(response.statusCode ?? 0, response.headers.location, response));
    request.on("upgrade", (response) => answered(response.statusCode ?? 0, undefined, Readable.from([])));
    request.end();
  });
}

// Made once and without root certificates: nothing is verified, and loading them costs megabytes.
let sharedContext: SecureContext | undefined;

function secureConnection(url: HttpUrl, protocols: string[], signal: AbortSignal): Promise<TLSSocket> {
  sharedContext ??= createSecureContext({ ca: [] });
  const socket = connectTls({
    ...socketOptions(url, signal),
    ...(isIP(url.hostname) === 0 ? { servername: url.hostname } : {}),
    secureContext: sharedContext,
    rejectUnauthorized: false,
    ALPNProtocols: protocols,
  });
  return new Promise((resolve, reject) => {
    let ends: ConnectionEnds | undefined;
    const aborting = onAbort(signal, () => {
      reject(signal.reason);
      socket.destroy();
    });
    socket.once("connect", () => {
      ends = endsOf(socket);
    });
    socket.once("secureConnect", () => {
      aborting[Symbol.dispose]();
      resolve(socket);
    });
    // Stays attached: an error that arrives between two owners of the socket must not end the process.
    socket.on("error", (error) => {
      aborting[Symbol.dispose]();
      const text = ends === undefined ? dialErrorText(url.hostname, url.port, error) : tlsErrorText(error, ends);
      reject(new TransportError(text, error, isPlainHttpAnswer(error) ? "plainHttp" : "other"));
    });
  });
}

function endsOf(socket: Socket): ConnectionEnds | undefined {
  const { localAddress, localPort, remoteAddress, remotePort } = socket;
  if (localAddress === undefined || localPort === undefined) return undefined;
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  return { local: joinHostPort(localAddress, localPort), remote: joinHostPort(remoteAddress, remotePort) };
}

function isMalformed(error: unknown): error is Error & { readonly rawPacket?: Buffer } {
  return codeOf(error)?.startsWith("HPE_") === true;
}

function malformedText(error: Error & { readonly rawPacket?: Buffer }): string {
  const [firstLine = ""] = (error.rawPacket?.toString("latin1", 0, 1024) ?? "").split(/\r?\n/);
  return `net/http: HTTP/1.x transport connection broken: malformed HTTP response ${goQuote(firstLine)}`;
}
