import { setMaxListeners } from "node:events";
import { Agent, type ClientRequest, type ClientRequestArgs, request as startRequest } from "node:http";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { type Clock, messageOf, onAbort, type Timer } from "../../../ground/base/index.ts";
import { type Connection, ConnectionError, type HttpRequest, type HttpResponse } from "./http.ts";

/** Connections that are kept open between requests, for a server (or a setting) without HTTP/2. */
export class Http1Pool implements Connection {
  readonly #agent: DialingAgent;
  readonly #server: URL;
  readonly #clock: Clock;
  readonly #active = new Set<ClientRequest>();
  #state: "open" | "retired" | "closed" = "open";
  #timer: Timer | undefined;

  /** `first` is a connection that is already open. */
  constructor(first: Socket, server: URL, dialMore: (signal: AbortSignal) => Promise<Socket>, clock: Clock) {
    this.#agent = new DialingAgent(first, dialMore);
    this.#server = server;
    this.#clock = clock;
  }

  get isOpen(): boolean {
    return this.#state !== "closed";
  }

  get isIdle(): boolean {
    return this.#active.size === 0;
  }

  get hasRoom(): boolean {
    return this.#state === "open";
  }

  send({ method, path, headers, body }: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
      const request = startRequest({
        method,
        path,
        headers: { ...headers, ...length, host: this.#server.host },
        agent: this.#agent,
      });
      this.#active.add(request);
      const aborting = onAbort(signal, () => {
        reject(signal.reason);
        request.destroy();
      });
      request.on("close", () => {
        aborting[Symbol.dispose]();
        this.#active.delete(request);
        if (this.#state === "retired" && this.#active.size === 0) this.#close();
      });
      request.on("error", (error) => {
        // One that says whether the request was sent comes from dialling.
        reject(error instanceof ConnectionError ? error : this.#failure(error, "maybe"));
      });
      request.on("response", (response) => {
        response.on("error", () => {});
        resolve({
          status: response.statusCode ?? 0,
          header: (name) => {
            const value = response.headers[name];
            return Array.isArray(value) ? value[0] : value;
          },
          body: response,
        });
      });
      request.end(body);
    });
  }

  retire(graceMs: number): void {
    if (this.#state !== "open") return;
    this.#state = "retired";
    if (this.#active.size === 0) this.#close();
    else this.#timer = this.#clock.after(graceMs, () => this.destroy(new Error("the connection was replaced")));
  }

  destroy(reason: Error): void {
    for (const request of this.#active) request.destroy(this.#failure(reason, "maybe"));
    this.#close();
  }

  #close(): void {
    this.#state = "closed";
    this.#timer?.cancel();
    this.#agent.close();
  }

  #failure(error: unknown, sent: "no" | "maybe"): ConnectionError {
    const message = `The connection to the API server ${this.#server.origin} broke: ${messageOf(error)}`;
    return new ConnectionError(message, sent, error);
  }
}

/** Hands out connections that we dial ourselves: through proxies, with certificates that may change. */
class DialingAgent extends Agent {
  #first: Socket | undefined;
  readonly #closing = new AbortController();
  readonly #dialMore: (signal: AbortSignal) => Promise<Socket>;

  constructor(first: Socket, dialMore: (signal: AbortSignal) => Promise<Socket>) {
    super({ keepAlive: true });
    setMaxListeners(0, this.#closing.signal);
    this.#first = first;
    this.#dialMore = dialMore;
  }

  override createConnection(
    _options: ClientRequestArgs,
    done?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | undefined {
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined && !first.destroyed) return first;
    this.#dialMore(this.#closing.signal).then(
      (socket) => done?.(null, socket),
      (error: unknown) => done?.(error instanceof Error ? error : new Error(String(error)), new Duplex()),
    );
    return undefined;
  }

  close(): void {
    this.#closing.abort(new Error("the connections were closed"));
    this.#first?.destroy();
    this.#first = undefined;
    this.destroy();
  }
}
