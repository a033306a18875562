import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { Socket } from "node:net";
import { type Clock, destroySession, messageOf, onAbort, type Timer } from "../../../ground/base/index.ts";
import { type Connection, ConnectionError, type HttpRequest, type HttpResponse } from "./http.ts";
import { type Http2State, newlyOpen, nextHttp2State } from "./http2-state.ts";

export interface Http2Settings {
  /** A connection that brought nothing for this long is asked whether it still lives. */
  readonly pingAfterMs: number;
  readonly pingTimeoutMs: number;
}

// Node's 64 KiB would stop a long list at every round trip; a reader that falls behind still holds back its stream.
const streamWindow = 1024 * 1024;
const connectionWindow = 16 * 1024 * 1024;
/** How long a peer has to close its end of a connection that nobody uses any more. */
const farewellMs = 5_000;

/** One HTTP/2 session; notices by itself when its peer has gone silent. */
export class Http2Connection implements Connection {
  readonly #socket: Socket;
  readonly #session: ClientHttp2Session;
  readonly #clock: Clock;
  readonly #settings: Http2Settings;
  readonly #server: URL;
  readonly #streams = new Set<ClientHttp2Stream>();
  #state: Http2State = newlyOpen;
  #heardAt: number;
  #timer: Timer | undefined;

  /** `socket` is open and has agreed on HTTP/2. */
  constructor(socket: Socket, server: URL, settings: Http2Settings, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
    this.#settings = settings;
    this.#server = server;
    this.#heardAt = clock.monotonic();
    this.#session = connect(server.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: streamWindow },
    });
    this.#session.on("connect", () => this.#session.setLocalWindowSize(connectionWindow));
    this.#session.on("remoteSettings", ({ maxConcurrentStreams }) => {
      this.#state = nextHttp2State(this.#state, { type: "settings", mostStreams: maxConcurrentStreams });
    });
    this.#session.on("error", (error) => {
      this.#state = nextHttp2State(this.#state, { type: "break", by: error });
    });
    this.#session.on("goaway", () => {
      this.#state = nextHttp2State(this.#state, { type: "retire" });
      if (this.#streams.size === 0) this.#closeSession();
    });
    this.#session.on("close", () => this.#timer?.cancel());
    this.#armPing(settings.pingAfterMs);
  }

  get isOpen(): boolean {
    return this.#state.step !== "broken" && !this.#session.destroyed;
  }

  get isIdle(): boolean {
    return this.#streams.size === 0;
  }

  get hasRoom(): boolean {
    if (this.#state.step !== "open" || this.#session.closed || this.#session.destroyed) return false;
    return this.#streams.size < this.#state.mostStreams;
  }

  send({ method, path, headers, body }: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      let stream: ClientHttp2Stream;
      try {
        stream = this.#session.request(
          {
            ...mutable(headers),
            ":method": method,
            ":path": path,
            ":scheme": "https",
            ":authority": this.#server.host,
          },
          { endStream: body === undefined },
        );
      } catch (error) {
        return reject(this.#failure(error, "no"));
      }
      this.#streams.add(stream);
      const aborting = onAbort(signal, () => {
        reject(signal.reason);
        stream.close(constants.NGHTTP2_CANCEL);
        // Data that nobody will read any more would hold the stream open.
        stream.destroy();
      });
      let broken: Error | undefined;
      stream.on("error", (error) => {
        broken = error;
      });
      stream.on("close", () => {
        aborting[Symbol.dispose]();
        this.#streams.delete(stream);
        if (this.#state.step === "retiring" && this.#streams.size === 0) this.#closeSession();
        const unseen = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM || stream.id === undefined;
        const brokenBy = this.#state.step === "broken" ? this.#state.by : undefined;
        reject(this.#failure(broken ?? brokenBy, unseen ? "no" : "maybe"));
      });
      stream.on("response", (answered) => {
        this.#heard();
        stream.on("data", this.#onData);
        stream.pause();
        resolve({
          status: answered[":status"] ?? 0,
          header: (name) => {
            const value = answered[name];
            return Array.isArray(value) ? value[0] : value;
          },
          body: stream,
        });
      });
      if (body !== undefined) stream.end(body);
    });
  }

  retire(graceMs: number): void {
    if (this.#state.step !== "open") return;
    this.#state = nextHttp2State(this.#state, { type: "retire" });
    if (this.#streams.size === 0) {
      this.#closeSession();
      return;
    }
    const timer = this.#clock.after(graceMs, () => this.destroy(new Error("the connection was replaced")));
    this.#session.once("close", () => timer.cancel());
  }

  destroy(reason: Error): void {
    if (this.#state.step === "broken") return;
    this.#state = nextHttp2State(this.#state, { type: "break", by: reason });
    destroySession(this.#session, this.#socket, reason);
  }

  /** Says goodbye; like `destroySession`, out of the session's own callbacks, and with a peer that may never answer. */
  #closeSession(): void {
    setImmediate(() => {
      this.#session.close();
      if (this.#socket.closed) return;
      const timer = this.#clock.after(farewellMs, () => this.#socket.destroy());
      this.#socket.once("close", () => timer.cancel());
    });
  }

  readonly #onData = (): void => this.#heard();

  #heard(): void {
    this.#heardAt = this.#clock.monotonic();
  }

  #failure(error: unknown, sent: "no" | "maybe"): ConnectionError {
    const why = error === undefined ? "it was closed" : messageOf(error);
    return new ConnectionError(`The connection to the API server ${this.#server.origin} broke: ${why}`, sent, error);
  }

  #armPing(ms: number): void {
    this.#timer = this.#clock.after(ms, () => {
      const quietMs = this.#clock.monotonic() - this.#heardAt;
      if (quietMs < this.#settings.pingAfterMs) this.#armPing(this.#settings.pingAfterMs - quietMs);
      else this.#ping();
    });
  }

  #ping(): void {
    if (!this.isOpen) return;
    const { pingAfterMs, pingTimeoutMs } = this.#settings;
    this.#timer = this.#clock.after(pingTimeoutMs, () =>
      this.destroy(new Error(`it did not answer a ping within ${pingTimeoutMs / 1_000} s`)),
    );
    this.#session.ping((error) => {
      this.#timer?.cancel();
      if (error !== null || !this.isOpen) return;
      this.#heard();
      this.#armPing(pingAfterMs);
    });
  }
}

function mutable(headers: HttpRequest["headers"]): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
  );
}
