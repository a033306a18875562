import type { IncomingMessage } from "node:http";
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from "node:http2";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { type Logger, messageOf, outliveFailedAccepts } from "../../../ground/base/index.ts";
import type { ShownCredentials } from "../auth/authenticate.ts";
import type { KeyPair } from "../auth/certificates.ts";
import { refuse, spliceToTarget } from "../proxy/splice.ts";
import { refuseUntranslated } from "../proxy/websocket.ts";
import { StatusError } from "../status-error.ts";
import type { Api, ApiRequest } from "./api.ts";
import { certificateOf } from "./credentials.ts";
import type { Reply } from "./reply.ts";
import { flushHead, streamWatch } from "./watch-stream.ts";

export interface ServerOptions {
  readonly certPem: string;
  readonly keyPem: string;
  /** Client certificates of this authority are believed. */
  readonly clientCaPem: string;
  /** As whom the server calls kubelets. */
  readonly kubeletIdentity: KeyPair;
}

/** Of one connection; who watches more opens another. Node would take as many as a client likes. */
const mostStreams = 250;

/** HTTPS by HTTP/2 or HTTP/1.1, whichever the client speaks. */
export class ApiHttpServer {
  readonly #server: Http2SecureServer;
  readonly #sockets = new Set<TLSSocket>();
  readonly #watches = new Set<() => void>();
  readonly #api: Api;
  readonly #log: Logger;

  constructor(options: ServerOptions, api: Api, log: Logger) {
    this.#api = api;
    this.#log = log;
    this.#server = createSecureServer({
      allowHTTP1: true,
      cert: options.certPem,
      key: options.keyPem,
      ca: options.clientCaPem,
      requestCert: true,
      // Who shows no certificate, or one of others, may still have a token.
      rejectUnauthorized: false,
      settings: { maxConcurrentStreams: mostStreams },
    });
    this.#server.on("secureConnection", (socket: TLSSocket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("request", (request, response) => void this.#serve(request, response));
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on("error", () => socket.destroy());
      void this.#upgrade(request, socket, head, options.kubeletIdentity);
    });
    this.#server.on("sessionError", (error) => log.debug(4, "A connection failed", { error: messageOf(error) }));
  }

  async listen(host: string, port: number): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        outliveFailedAccepts(this.#server);
        resolve();
      });
    });
    return this.#server.address() as AddressInfo;
  }

  /** Cuts every connection; clients find out as they would after a network failure. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.dropConnections();
    await closed;
    for (const end of this.#watches) end();
  }

  async #serve(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    destroyWhenAborted(request);
    const warnings: string[] = [];
    let reply: Reply;
    try {
      reply = await this.#api.serve(readRequest(request, response, warnings));
    } catch (error) {
      reply = errorReply(error, request, this.#log);
    }
    try {
      this.#send(reply, response, warnings);
    } catch (error) {
      this.#log.debug(4, "An answer could not be sent", { path: request.url, error: messageOf(error) });
      // Half an answer would keep the client waiting.
      response.destroy();
    }
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, identity: KeyPair): Promise<void> {
    try {
      const target = this.#api.upgrade({
        method: request.method ?? "GET",
        url: requestUrl(request.url ?? "/"),
        credentials: credentialsOf(request.socket as TLSSocket, request.headers.authorization),
      });
      refuseUntranslated(request);
      await spliceToTarget(request, socket, head, target, identity);
    } catch (error) {
      if (!(error instanceof StatusError)) this.#log.error("A stream failed", error, { path: request.url });
      refuse(socket, error);
    }
  }

  #send(reply: Reply, response: Http2ServerResponse, warnings: readonly string[]): void {
    if (isGone(response)) return;
    if (warnings.length > 0) response.setHeader("warning", fittingWarnings(warnings));
    switch (reply.type) {
      case "json":
        response.writeHead(reply.code, { "content-type": reply.contentType ?? "application/json" });
        response.end(`${JSON.stringify(reply.body)}\n`);
        break;
      case "text":
        response.writeHead(reply.code, { "content-type": "text/plain; charset=utf-8" });
        response.end(reply.text);
        break;
      case "bytes":
        response.writeHead(reply.code, { "content-type": reply.contentType });
        response.end(reply.bytes);
        break;
      case "stream":
        response.writeHead(reply.code, { "content-type": reply.contentType });
        response.once("close", () => reply.body.destroy());
        // Whoever waits for the first line of a log shall know that the log is there.
        flushHead(response);
        reply.body.on("error", () => response.destroy()).pipe(response);
        break;
      case "watch":
        streamWatch(reply, response, this.#watches);
        break;
    }
  }
}

/**
 * A client that resets a stream without an error, as Node's does, leaves it waiting for someone to read the rest of a body
 * that nobody wants; neither the answer nor what it holds would ever be let go.
 */
function destroyWhenAborted({ stream }: Http2ServerRequest): void {
  // There is none where the client speaks HTTP/1.1.
  (stream as Http2ServerRequest["stream"] | undefined)?.once("aborted", () => stream.destroy());
}

/** Clients and proxies give up on longer headers; upstream stops here as well. */
const mostWarningBytes = 4096;

/** As many of the warnings as fit, each once, in bytes of UTF-8 as other servers send them. */
function fittingWarnings(warnings: readonly string[]): readonly string[] {
  const lines: string[] = [];
  let size = 0;
  for (const text of new Set(warnings)) {
    const line = Buffer.from(`299 - ${JSON.stringify(text).replaceAll("\x7f", "")}`).toString("latin1");
    size += line.length;
    if (size > mostWarningBytes) break;
    lines.push(line);
  }
  return lines;
}

function credentialsOf(socket: TLSSocket, authorization: string | undefined): ShownCredentials {
  const certificate = certificateOf(socket);
  return { ...(certificate !== undefined && { certificate }), ...(authorization !== undefined && { authorization }) };
}

function readRequest(request: Http2ServerRequest, response: Http2ServerResponse, warnings: string[]): ApiRequest {
  return {
    method: request.method,
    url: requestUrl(request.url),
    contentType: request.headers["content-type"] ?? "",
    accept: request.headers.accept ?? "",
    credentials: credentialsOf(socketOf(request), request.headers.authorization),
    stream: request,
    warn: (message) => warnings.push(message),
    clientLeft: () => signalOfClose(response),
  };
}

/** Put together, not resolved: what begins with "//" would name a host. */
export function requestUrl(target: string): URL {
  return new URL(`https://localhost${target.startsWith("/") ? "" : "/"}${target}`);
}

function signalOfClose(response: Http2ServerResponse): AbortSignal {
  const left = new AbortController();
  if (isGone(response)) left.abort();
  else response.once("close", () => left.abort());
  return left.signal;
}

function isGone(response: Http2ServerResponse): boolean {
  return response.destroyed || response.stream?.destroyed === true;
}

function socketOf(request: Http2ServerRequest): TLSSocket {
  return (request.stream?.session?.socket ?? request.socket) as TLSSocket;
}

function errorReply(error: unknown, request: Http2ServerRequest, log: Logger): Reply {
  if (error instanceof StatusError) return { type: "json", code: error.code, body: error.status() };
  log.error("A request failed", error, { method: request.method, path: request.url });
  const failure = new StatusError(500, "InternalError", `Internal error occurred: ${messageOf(error)}`);
  return { type: "json", code: 500, body: failure.status() };
}
