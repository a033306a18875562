import { createSecureContext, type SecureContext } from "node:tls";
import {
  type Clock,
  isAbort,
  type Logger,
  loadedPart,
  messageOf,
  SharedWork,
  withDeadline,
} from "../../../ground/base/index.ts";
import type { ClientCertificate, Credentials } from "../access/index.ts";
import { type DialTarget, dial } from "./dial.ts";
import { type Connection, ConnectionError, type HttpRequest, type HttpResponse } from "./http.ts";
import { Http2Connection, type Http2Settings } from "./http2-connection.ts";

export interface TransportSettings extends Http2Settings {
  readonly server: URL;
  readonly tlsServerName: string;
  readonly verifyServer: boolean;
  readonly proxy: URL | undefined;
  /** False: HTTP/1.1 even where the server could do better. */
  readonly http2: boolean;
  readonly dialTimeoutMs: number;
}

export interface TransportPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly credentials: Credentials;
  /** PEM of the authorities that may vouch for the server; undefined for those of the system. */
  readonly authority: () => Promise<Buffer | undefined>;
}

const replaceGraceMs = 5_000;
const mostSends = 3;
const mostDials = 10;

/**
 * Keeps connections to one API server: normally a single HTTP/2 session, another one when that is full, and fresh ones
 * when the client certificate changes. Opens them when needed, so that a server that was away is found again.
 */
export class Transport implements Disposable {
  readonly #settings: TransportSettings;
  readonly #ports: TransportPorts;
  readonly #dialing = new SharedWork<string, void>();
  #connections: { readonly certificateId: string; readonly connection: Connection }[] = [];
  #secure: { readonly key: string; readonly context: SecureContext } | undefined;
  #closed = false;
  /** A server behind a proxy may have a path of its own, below which the API is found. */
  readonly #prefix: string;

  constructor(settings: TransportSettings, ports: TransportPorts) {
    this.#settings = settings;
    this.#prefix = settings.server.pathname.replace(/\/+$/, "");
    this.#ports = ports;
  }

  /** Resolves with the head of the answer. Rejects with ConnectionError, CredentialError or the signal's reason. */
  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    const { credentials } = this.#ports;
    let attempt = 1;
    for (let dials = 0; dials <= mostDials; ) {
      const certificate = await credentials.certificate(signal);
      const headers = { ...request.headers, ...(await credentials.headers(signal)) };
      // From here to the sending nothing waits: a place that is seen must not be taken by another.
      const connection = this.#choose(certificate?.id ?? "");
      if (connection === undefined) {
        dials++;
        const key = certificate?.id ?? "";
        await this.#dialing.join(key, (shared) => this.#open(certificate, shared), signal);
        continue;
      }
      try {
        return await connection.send({ ...request, path: this.#prefix + request.path, headers }, signal);
      } catch (error) {
        // A server that is being replaced says which requests it did not look at; those belong on a new connection.
        const unseen = error instanceof ConnectionError && error.sent === "no";
        if (!unseen || ++attempt > mostSends || signal.aborted) throw error;
      }
    }
    throw new ConnectionError(`The API server ${this.#settings.server.origin} accepts no requests`, "no");
  }

  get openConnections(): number {
    return this.#connections.filter(({ connection }) => connection.isOpen).length;
  }

  /** Cuts every connection at once; the next request opens a new one. */
  closeConnections(reason: Error): void {
    const connections = this.#connections;
    this.#connections = [];
    for (const { connection } of connections) connection.destroy(reason);
  }

  /** Lets what is under way finish, for a moment; the next request opens a new connection. */
  retireConnections(): void {
    for (const { connection } of this.#connections) connection.retire(replaceGraceMs);
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.closeConnections(new Error("the client was closed"));
  }

  /** A connection that shows the certificate and has room; undefined when one must be opened. */
  #choose(certificateId: string): Connection | undefined {
    if (this.#closed) throw new ConnectionError("The API client was closed", "no");
    // Those that are being given up are kept until they are gone: closing must find them.
    this.#connections = this.#connections.filter(({ connection }) => connection.isOpen);
    const current = this.#connections.filter((kept) => kept.certificateId === certificateId);
    const outdated = this.#connections.filter((kept) => kept.certificateId !== certificateId);
    if (outdated.some(({ connection }) => connection.hasRoom)) {
      this.#ports.log.info("The client certificate changed; replacing the connections to the API server");
    }
    for (const { connection } of outdated) connection.retire(replaceGraceMs);
    const free = current.find(({ connection }) => connection.hasRoom)?.connection;
    // Beyond the first, a connection is kept only as long as it is needed.
    for (const { connection } of current) {
      if (free !== undefined && connection !== free && connection.isIdle) connection.retire(replaceGraceMs);
    }
    return free;
  }

  async #open(certificate: ClientCertificate | undefined, signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    const { server, http2 } = this.#settings;
    const socket = await this.#dial(certificate, http2 ? ["h2", "http/1.1"] : ["http/1.1"], signal);
    let connection: Connection;
    if ("alpnProtocol" in socket && socket.alpnProtocol === "h2") {
      connection = new Http2Connection(socket, server, this.#settings, clock);
    } else {
      const { Http1Pool } = await loadedPart(import("./http1-pool.ts"));
      connection = new Http1Pool(socket, server, (more) => this.#dial(certificate, ["http/1.1"], more), clock);
    }
    if (this.#closed || signal.aborted) {
      connection.destroy(new Error("the client was closed"));
      throw signal.aborted ? signal.reason : new ConnectionError("The API client was closed", "no");
    }
    this.#connections.push({ certificateId: certificate?.id ?? "", connection });
  }

  async #dial(certificate: ClientCertificate | undefined, protocols: readonly string[], signal: AbortSignal) {
    const { server, tlsServerName, verifyServer, proxy, dialTimeoutMs } = this.#settings;
    const late = (): Error => new Error(`no connection within ${dialTimeoutMs / 1_000} s`);
    try {
      const usesTls = server.protocol === "https:";
      const context = usesTls ? await this.#secureContext(certificate) : undefined;
      const target: DialTarget = {
        server,
        proxy,
        tls: context && { context, serverName: tlsServerName, verify: verifyServer, protocols },
      };
      return await withDeadline(this.#ports.clock, dialTimeoutMs, late, signal, (bounded) => dial(target, bounded));
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      throw new ConnectionError(`Cannot reach the API server ${server.origin}: ${messageOf(error)}`, "no", error);
    }
  }

  /** Parsing certificates costs more than a handshake; they seldom change. */
  async #secureContext(certificate: ClientCertificate | undefined): Promise<SecureContext> {
    const authority = await this.#ports.authority();
    const key = `${certificate?.id ?? ""} ${authority?.toString("latin1") ?? ""}`;
    if (this.#secure?.key !== key) {
      const context = createSecureContext({
        ...(authority !== undefined && { ca: authority }),
        ...(certificate !== undefined && { cert: certificate.certificate, key: certificate.key }),
      });
      this.#secure = { key, context };
    }
    return this.#secure.context;
  }
}
