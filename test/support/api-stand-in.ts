import { createServer as createPlainServer, type ServerResponse } from "node:http";
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { KeyPair } from "./test-certificates.ts";

/** One request as a scripted API server sees it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** Common name of the client's certificate; empty for none. */
  readonly clientName: string;
  /** Number of the connection it came on, from 1. */
  readonly connection: number;
  readonly version: string;
}

export interface Reply {
  status(code: number, headers?: Readonly<Record<string, string>>): void;
  write(text: string | Uint8Array): void;
  end(text?: string): void;
  json(value: unknown, code?: number, headers?: Readonly<Record<string, string>>): void;
  /** Cuts the connection under the answer. */
  cut(): void;
  onClose(action: () => void): void;
}

export type Script = (request: SeenRequest, reply: Reply) => void | Promise<void>;

export type Protocol = "h2" | "https/1.1" | "http/1.1";

/** An API server of few words: a test says what it answers. */
export class ApiStandIn implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  readonly sockets = new Set<Socket>();
  script: Script;
  /** Connections made so far. */
  connections = 0;
  readonly #server: ReturnType<typeof makeServer>;
  readonly #protocol: Protocol;
  readonly #sessions = new Set<ServerHttp2Session>();

  private constructor(protocol: Protocol, script: Script, tls: ServerTls | undefined) {
    this.script = script;
    this.#protocol = protocol;
    const answer = (request: Http2ServerRequest, response: Http2ServerResponse): void =>
      void this.#answer(request, response);
    this.#server = makeServer(protocol, tls, answer);
    this.#server.on(protocol === "http/1.1" ? "connection" : "secureConnection", (socket: Socket) => {
      // Those of HTTP/2 are counted by their sessions, which begin earlier.
      if (protocol !== "h2") numbers.set(socket, ++this.connections);
      // Else the second part of an answer waits for the first to be acknowledged, which takes 40 ms.
      socket.setNoDelay(true);
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket)).on("error", () => {});
    });
    if (protocol !== "h2") return;
    const server = this.#server as Http2SecureServer;
    server.on("session", (session) => {
      numbers.set(session, ++this.connections);
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
    });
    server.on("sessionError", () => {});
  }

  static async start(options: {
    readonly protocol: Protocol;
    readonly tls?: ServerTls;
    readonly script?: Script;
    readonly port?: number;
  }): Promise<ApiStandIn> {
    const standIn = new ApiStandIn(options.protocol, options.script ?? ((_, reply) => reply.json({})), options.tls);
    await new Promise<void>((resolve) => standIn.#server.listen(options.port ?? 0, "127.0.0.1", resolve));
    return standIn;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.#protocol === "http/1.1" ? "http" : "https"}://127.0.0.1:${this.port}`;
  }

  /** Tells every HTTP/2 client to take new requests elsewhere, as a server does that is about to stop. */
  sayGoaway(): void {
    for (const session of this.#sessions) session.goaway();
  }

  /** Cuts every connection; the server goes on listening. */
  cutAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.cutAll();
    await closed;
  }

  async #answer(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const session = request.httpVersion === "2.0" ? request.stream.session : undefined;
    const socket = session?.socket ?? request.socket;
    const parts: Buffer[] = [];
    try {
      for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
    } catch {
      return;
    }
    const url = new URL(request.url, "http://server");
    const peer = (socket as Partial<TLSSocket>).getPeerCertificate?.();
    const seen: SeenRequest = {
      method: request.method,
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: Buffer.concat(parts).toString("utf8"),
      clientName: String(peer?.subject?.CN ?? ""),
      connection: numbers.get(session ?? socket) ?? 0,
      version: request.httpVersion,
    };
    this.seen.push(seen);
    response.on("error", () => {});
    let hasHead = false;
    const head = (code: number, headers: Readonly<Record<string, string>>): void => {
      hasHead = true;
      response.writeHead(code, { "content-type": "application/json", ...headers });
      // HTTP/1.1 would keep the head until there is a body.
      (response as unknown as Partial<ServerResponse>).flushHeaders?.();
    };
    const reply: Reply = {
      status: (code, headers = {}) => head(code, headers),
      write: (text) => {
        if (!hasHead) head(200, {});
        response.write(text);
      },
      end: (text = "") => {
        if (!hasHead) head(200, {});
        response.end(text);
      },
      json: (value, code = 200, headers = {}) => {
        head(code, headers);
        response.end(JSON.stringify(value));
      },
      cut: () => (session ?? socket).destroy(),
      onClose: (action) => void response.on("close", action),
    };
    await this.script(seen, reply);
  }
}

export interface ServerTls extends KeyPair {
  /** Asks clients for a certificate of this authority. */
  readonly clientAuthority?: string;
  readonly maxStreams?: number;
}

const numbers = new WeakMap<object, number>();

function makeServer(
  protocol: Protocol,
  tls: ServerTls | undefined,
  answer: (request: Http2ServerRequest, response: Http2ServerResponse) => void,
) {
  const onRequest = answer as never;
  if (protocol === "http/1.1") return createPlainServer(onRequest);
  const options = {
    cert: tls?.certificate,
    key: tls?.key,
    ...(tls?.clientAuthority !== undefined && {
      ca: tls.clientAuthority,
      requestCert: true,
      rejectUnauthorized: false,
    }),
  };
  if (protocol === "https/1.1") return createHttpsServer(options, onRequest);
  const settings = tls?.maxStreams === undefined ? {} : { settings: { maxConcurrentStreams: tls.maxStreams } };
  return createSecureServer({ ...options, ...settings, allowHTTP1: true }, answer);
}
