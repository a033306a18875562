import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { messageOf, outliveFailedAccepts, TaskScope } from "../../../ground/base/index.ts";
import type { ShimContext } from "../service/context.ts";
import { forwardPorts, portForwardProtocol } from "./port-forward.ts";
import { runAttach, runExec } from "./run-command.ts";
import { openSpdyCommand, spdyCommandProtocols } from "./spdy-command.ts";
import { type StreamRequest, StreamRequests } from "./stream-requests.ts";
import { acceptWebSocket } from "./web-socket-channels.ts";
import { openWebSocketCommand, webSocketProtocols } from "./web-socket-command.ts";
import { forwardWebSocketPorts, portsProblem, webSocketPortProtocols } from "./web-socket-ports.ts";

const mostConnections = 1000;
const headersWithinMs = 10_000;

/** Serves exec, attach and port-forward to whoever has an address that was given out. Listens on the node itself only. */
export class StreamServer implements AsyncDisposable {
  readonly requests: StreamRequests;
  readonly #context: ShimContext;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();
  readonly #scope = new TaskScope();

  constructor(context: ShimContext) {
    this.#context = context;
    this.#server = createServer(
      { headersTimeout: headersWithinMs, requestTimeout: headersWithinMs },
      (request, response) => {
        if (request.url === "/metrics") return void this.#tellMetrics(request, response);
        const isKnown = this.requests.redeem(tokenIn(request)) !== undefined;
        response.writeHead(isKnown ? 400 : 404, { Connection: "close" });
        response.end(isKnown ? "unable to upgrade: missing upgrade headers in request\n" : "404 page not found\n");
      },
    );
    this.#server.maxConnections = mostConnections;
    this.#server.on("upgrade", (request, socket, head) => this.#upgraded(request, socket, head));
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.requests = new StreamRequests(context.clock, () => this.#baseUrl());
  }

  async listen(address: string): Promise<void> {
    const colon = address.lastIndexOf(":");
    const host = address.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
    this.#server.listen(Number(address.slice(colon + 1)), host);
    await once(this.#server, "listening");
    outliveFailedAccepts(this.#server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await this.#scope.stop();
  }

  #baseUrl(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  }

  /** For a shim that is a process of its own. Who can reach this address learns how often Docker was asked for what. */
  async #tellMetrics({ method }: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = method === "GET" ? await this.#context.metrics.registry.text() : "";
    response.writeHead(method === "GET" ? 200 : 405, { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" });
    response.end(text);
  }

  #upgraded(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    const asked = this.requests.redeem(tokenIn(request));
    if (asked === undefined) {
      refuse(socket, "404 Not Found", "404 page not found");
      return;
    }
    if (head.length > 0) socket.unshift(head);
    this.#scope.spawn(`${asked.type} stream`, async (signal) => {
      try {
        await this.#serve(asked, request, socket, signal);
      } catch (error) {
        this.#context.log.debug(2, "a stream ended badly", { type: asked.type, error: messageOf(error) });
        socket.destroy();
      }
    });
  }

  async #serve(asked: StreamRequest, request: IncomingMessage, socket: Duplex, signal: AbortSignal): Promise<void> {
    const upgrade = String(request.headers.upgrade ?? "").toLowerCase();
    if (upgrade === "websocket") return await this.#serveWebSocket(asked, request, socket, signal);
    if (upgrade !== "spdy/3.1")
      return refuse(socket, "400 Bad Request", `unable to upgrade: cannot upgrade to "${upgrade}"`);
    const offered = asked.type === "portforward" ? [portForwardProtocol] : spdyCommandProtocols;
    const protocol = chooseProtocol(request.headers["x-stream-protocol-version"], offered);
    if (protocol === undefined) {
      const headers = offered.map((name) => `X-Accepted-Stream-Protocol-Versions: ${name}\r\n`).join("");
      return refuse(socket, "403 Forbidden", "unable to negotiate a protocol", headers);
    }
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" +
        `X-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
    );
    if (asked.type === "portforward") return await forwardPorts(this.#context, asked.podSandboxId, socket, signal);
    const remote = await openSpdyCommand(socket, asked, protocol, this.#context.clock, signal);
    if (asked.type === "exec") await runExec(this.#context, asked, remote, signal);
    else await runAttach(this.#context, asked, remote, signal);
  }

  async #serveWebSocket(
    asked: StreamRequest,
    request: IncomingMessage,
    socket: Duplex,
    signal: AbortSignal,
  ): Promise<void> {
    const wished = request.headers["sec-websocket-protocol"];
    const key = request.headers["sec-websocket-key"];
    const isForPorts = asked.type === "portforward";
    const protocol = chooseProtocol(wished, isForPorts ? webSocketPortProtocols : webSocketProtocols);
    if (protocol === undefined || key === undefined)
      return refuse(socket, "403 Forbidden", "unable to negotiate a protocol");
    const problem = isForPorts ? portsProblem(asked.ports) : undefined;
    if (problem !== undefined) return refuse(socket, "400 Bad Request", problem);
    acceptWebSocket(socket, key, wished === undefined ? undefined : protocol);
    if (isForPorts) return await forwardWebSocketPorts(this.#context, asked, socket, protocol, signal);
    const remote = openWebSocketCommand(socket, asked, protocol, this.#context.clock, signal);
    if (asked.type === "exec") await runExec(this.#context, asked, remote, signal);
    else await runAttach(this.#context, asked, remote, signal);
  }
}

/** The first of the client's wishes that we can fulfil; one that says nothing gets the oldest. */
export function chooseProtocol(wished: string | string[] | undefined, offered: readonly string[]): string | undefined {
  const wishes = (Array.isArray(wished) ? wished : [wished ?? ""])
    .flatMap((line) => line.split(","))
    .map((name) => name.trim());
  if (wishes.every((wish) => wish === "")) return offered.at(-1);
  return wishes.find((wish) => offered.includes(wish));
}

function tokenIn({ url = "" }: IncomingMessage): string {
  return /^\/(?:exec|attach|portforward)\/([\w-]+)(?:\?|$)/.exec(url)?.[1] ?? "";
}

function refuse(socket: Duplex, status: string, text: string, headers = ""): void {
  socket.end(
    `HTTP/1.1 ${status}\r\n${headers}Content-Type: text/plain\r\nConnection: close\r\nContent-Length: ${text.length + 1}\r\n\r\n${text}\n`,
  );
}
