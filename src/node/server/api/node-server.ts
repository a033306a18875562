import { createServer, type IncomingMessage, type RequestListener, type Server, STATUS_CODES } from "node:http";
import { createServer as createTlsServer, type ServerOptions, type Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, onAbort } from "../../../ground/base/index.ts";
import { listen, serve } from "../http.ts";
import { endAndLeave } from "../streaming/half-open.ts";
import { ClientTrust } from "./client-trust.ts";
import { Dispatcher, type DispatchPorts } from "./dispatch.ts";
import { openGate } from "./gate.ts";
import { UnauthenticatedConnections } from "./unauthenticated-connections.ts";

/** Where a server listens; with TLS, how. */
export interface Where {
  readonly host: string;
  readonly port: number;
}

/** What TLS is served with; with `ca`, clients are asked for a certificate, and what it proves is decided later. */
export type ServingTls = Pick<ServerOptions, "key" | "cert" | "ca" | "minVersion" | "ciphers">;

const limits = {
  // Bearer tokens and the headers of proxies are long, but not that long.
  maxHeaderSize: 64 * 1024,
  // Whoever has not said what it wants by then is not going to.
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 90_000,
  noDelay: true,
} as const;
const handshakeTimeoutMs = 10_000;

/** The API of the node on one port. */
export class NodeServer {
  readonly #where: Where;
  readonly #server: Server;
  readonly #dispatcher: Dispatcher;
  #tls: { readonly server: TlsServer; readonly settings: ServingTls } | undefined;
  readonly #trust: ClientTrust;
  readonly #unauthenticated = new UnauthenticatedConnections();

  constructor(where: Where, tls: ServingTls | undefined, ports: DispatchPorts) {
    this.#where = where;
    this.#trust = new ClientTrust(tls?.ca);
    // Where the gate is open, nobody ever shows who it is.
    const onLetIn = (socket: Socket): void => {
      if (ports.gate !== openGate) this.#unauthenticated.letIn(socket);
    };
    this.#dispatcher = new Dispatcher({ ...ports, onLetIn });
    const listener: RequestListener = (request, response) => {
      if (this.#trust.isOutdated(request.socket)) request.socket.destroy();
      else this.#dispatcher.request(request, response);
    };
    this.#server = tls === undefined ? createServer(limits, listener) : this.#secure(tls, listener);
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket) =>
      answerMalformed(error, socket, ports.clock),
    );
    this.#server.on("upgrade", (request, socket, head) => {
      // Node has let go of the connection, with an answer to an earlier request still on it.
      if (this.#dispatcher.isAnswering(request)) socket.destroy();
      else if (this.#trust.isOutdated(request.socket)) socket.destroy();
      else if (this.#dispatcher.mayUpgrade(request)) this.#dispatcher.upgrade(request, socket, head);
      else this.#ignoreUpgrade(request, socket, head);
    });
    this.#server.on("connection", (socket: Socket) => {
      this.#trust.connected(socket);
      this.#unauthenticated.connected(socket);
    });
  }

  /**
   * Node has let go of the connection: nobody watches for its end or its pace any more. It is handed to the server anew,
   * as one whose first request is this one without the wish, and is good for this request alone.
   */
  #ignoreUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.unshift(Buffer.concat([headWithoutUpgrade(request), head]));
    this.#server.emit(this.#tls === undefined ? "connection" : "secureConnection", socket);
  }

  #secure(tls: ServingTls, listener: RequestListener): TlsServer {
    const server = createTlsServer(
      {
        ...limits,
        ...tls,
        handshakeTimeout: handshakeTimeoutMs,
        requestCert: tls.ca !== undefined,
        rejectUnauthorized: false,
        // As plain HTTP has it: a client of an upgraded connection may end its direction and still listen.
        allowHalfOpen: true,
        ALPNProtocols: ["http/1.1"],
      },
      listener,
    );
    this.#tls = { server, settings: tls };
    return server;
  }

  /**
   * New connections are served with the new files. Those whose clients were believed by other authorities serve no
   * further request; what they are being sent goes on.
   */
  renewTls(material: Pick<ServingTls, "key" | "cert" | "ca">): void {
    if (this.#tls === undefined) return;
    const { key: _key, cert: _cert, ca: _ca, ...limits } = this.#tls.settings;
    this.#tls.server.setSecureContext({ ...limits, ...material });
    if (!this.#trust.renew(material.ca)) return;
    this.#server.closeIdleConnections();
  }

  /** The port that was got, also when any was asked for. */
  get port(): number {
    const address = this.#server.address();
    return address === null || typeof address === "string" ? this.#where.port : address.port;
  }

  async listen(): Promise<void> {
    try {
      await listen(this.#server, this.#where);
    } catch (error) {
      throw new Error(`Failed to listen and serve on ${this.#where.host}:${this.#where.port}`, { cause: error });
    }
  }

  /** Serves until aborted; then cuts all connections and waits for what was being answered. */
  async serve(signal: AbortSignal): Promise<void> {
    // The server does not count what was upgraded as its own, but would wait for it to end.
    // Connections that may be half open are not all closed by it either, so they are cut here.
    const sockets = new Set<Socket>();
    this.#server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    const cut = (): void => {
      this.#dispatcher.cutUpgraded();
      for (const socket of sockets) socket.destroy();
    };
    using _ = onAbort(signal, cut);
    try {
      await serve(this.#server, signal);
    } finally {
      cut();
      await this.#dispatcher.settled();
    }
  }
}

function headWithoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? "";
    if (!["upgrade", "connection"].includes(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[index + 1] ?? ""}`);
  }
  return Buffer.from([...lines, "Connection: close", "", ""].join("\r\n"), "latin1");
}

/** What is no request gets as clear an answer as one can give; the peer may still be sending. */
function answerMalformed({ code }: NodeJS.ErrnoException, socket: Duplex, clock: Clock): void {
  // The parser complains of every further piece too.
  if (socket.writableEnded) return;
  const status = malformed.get(code ?? "") ?? (code?.startsWith("HPE_") ? 400 : undefined);
  // Without a handshake, or without a connection, there is nobody to answer.
  if (status === undefined || !socket.writable) return void socket.destroy();
  endAndLeave(socket, clock, `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`);
}

const malformed: ReadonlyMap<string, number> = new Map([
  ["ERR_HTTP_REQUEST_TIMEOUT", 408],
  ["HPE_CHUNK_EXTENSIONS_OVERFLOW", 413],
  ["HPE_HEADER_OVERFLOW", 431],
]);
