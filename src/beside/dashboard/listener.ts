import type { Server as HttpServer, IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import {
  type Clock,
  hasCode,
  type Logger,
  messageOf,
  outliveFailedAccepts,
  untilAborted,
} from "../../ground/base/index.ts";
import { type HostPort, hostPortText } from "../../ground/config/index.ts";
import type { Dashboard, Door } from "./dashboard.ts";
import { Sessions } from "./door/sessions.ts";

export interface ListenerPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Where the token for the next login is. */
  readonly tokenFile: string;
  readonly bootId: string;
  /** Loads the dashboard the first time that somebody comes. */
  readonly dashboard: () => Promise<Dashboard>;
}

const mostConnections = 100;
/** How soon a token that could not be written is written again. */
const tokenEveryMs = 30_000;
/** Live streams say something every 15 s; what is silent for longer has nobody behind it. */
const silentMs = 60_000;

/**
 * The port for people of this machine. Until somebody connects it is a socket and nothing else: a server of HTTP has a
 * timer of its own, and the dashboard is code that nobody may ever need.
 */
export class DashboardListener {
  readonly #where: HostPort;
  readonly #ports: ListenerPorts;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Those that nobody has logged in by, the oldest first. */
  readonly #strangers = new Set<Socket>();
  readonly #sessions: Sessions;
  #http: Promise<HttpServer> | undefined;

  constructor(where: HostPort, ports: ListenerPorts) {
    const { clock, tokenFile: path, bootId } = ports;
    this.#where = where;
    this.#ports = ports;
    this.#sessions = new Sessions({ clock, path, bootId, address: hostPortText(where) });
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.#accept(socket));
  }

  /** False when the port can't be had: nobody needs the dashboard so much that pods should wait for it. */
  async listen(): Promise<boolean> {
    const { log, tokenFile } = this.#ports;
    const address = hostPortText(this.#where);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once("error", reject);
        this.#server.listen(this.#where, () => resolve());
      });
      this.#server.removeAllListeners("error");
      outliveFailedAccepts(this.#server);
    } catch (error) {
      const why = hasCode(error, "EADDRINUSE") ? "another program has the port" : messageOf(error);
      log.warn("There is no dashboard", { address, why });
      return false;
    }
    await this.#sessions.restore();
    if (!this.#sessions.hasToken) await this.#writeToken();
    log.info("The dashboard is there", { address, tokenFile });
    return true;
  }

  /** Serves until aborted, then lets all viewers go. */
  async serve(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#sessions.hasToken) {
      await this.#ports.clock.sleep(tokenEveryMs, signal).catch(() => {});
      if (!signal.aborted) await this.#writeToken();
    }
    await untilAborted(signal);
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** A disk that is full, or read-only, keeps people from logging in; it must not keep the agent from its pods. */
  async #writeToken(): Promise<void> {
    const { log, tokenFile } = this.#ports;
    try {
      await this.#sessions.renewToken();
    } catch (error) {
      log.warn("Nobody can log in to the dashboard yet", { tokenFile, why: messageOf(error) });
    }
  }

  #accept(socket: Socket): void {
    if (!this.#hasRoom()) return void socket.destroy();
    this.#sockets.add(socket);
    this.#strangers.add(socket);
    socket.once("close", () => this.#forget(socket));
    socket.on("error", () => socket.destroy());
    this.#http ??= this.#loadHttp();
    this.#http.then(
      (http) => {
        if (socket.destroyed) return;
        http.emit("connection", socket);
        socket.resume();
      },
      (error) => {
        this.#http = undefined;
        this.#ports.log.error("The dashboard could not be loaded", error);
        socket.destroy();
      },
    );
  }

  /** Anybody on the machine may connect, and say nothing: the oldest of those makes room for the next. */
  #hasRoom(): boolean {
    if (this.#sockets.size < mostConnections) return true;
    const [oldest] = this.#strangers;
    if (oldest === undefined) return false;
    this.#forget(oldest);
    oldest.destroy();
    return true;
  }

  #forget(socket: Socket): void {
    this.#sockets.delete(socket);
    this.#strangers.delete(socket);
  }

  async #loadHttp(): Promise<HttpServer> {
    const { createServer: createHttpServer } = await import("node:http");
    const dashboard = await this.#ports.dashboard();
    const { host: bound, port } = this.#where;
    const onLetIn = (socket: Socket): void => void this.#strangers.delete(socket);
    const door: Door = { type: "local", sessions: this.#sessions, bound, cookieName: `nodelet-${port}`, onLetIn };
    const server = createHttpServer({ maxHeaderSize: 16 * 1024 }, (request, response) => {
      this.#answer(dashboard, door, request, response).catch((error: unknown) => {
        this.#ports.log.error("The dashboard could not answer", error);
        response.destroy();
      });
    });
    server.setTimeout(silentMs);
    return server;
  }

  async #answer(dashboard: Dashboard, door: Door, request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => response.destroy());
    const url = parse(request.url ?? "");
    const path = url && /^\/dashboard\/(.*)$/s.exec(url.pathname)?.[1];
    if (url !== undefined && path !== undefined) {
      return await dashboard.answer({ request, response, path, query: url.searchParams }, door);
    }
    const isRoot = url?.pathname === "/" || url?.pathname === "/dashboard";
    response.writeHead(isRoot ? 302 : 404, isRoot ? { Location: "/dashboard/" } : {});
    response.end();
  }
}

function parse(target: string): URL | undefined {
  try {
    return new URL(target, "http://localhost");
  } catch {
    return undefined;
  }
}
