import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { allEnded, type Clock, type Logger, messageOf, noTracer, type Tracer } from "../../../ground/base/index.ts";
import { sendText } from "../http.ts";
import { endAndLeave } from "../streaming/half-open.ts";
import { AnswerError } from "./answer-error.ts";
import type { Gate } from "./gate.ts";
import { type ApiCall, type ApiMount, findMount, matchRoute, type Upgrade } from "./router.ts";
import { parseTarget } from "./target.ts";

export interface DispatchPorts {
  readonly mounts: readonly ApiMount[];
  readonly gate: Gate;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of every request when its handling begins; the result is called at its end. */
  readonly onRequest: (method: string, path: string) => () => void;
  readonly tracer?: Tracer;
  /** Told of the connection of every request that the gate lets in. */
  readonly onLetIn?: (socket: Socket) => void;
}

/** Few clients send requests ahead of answers; who sends more than these is after something else. */
const mostSentAhead = 100;

/** Leads requests to their handlers: path, then credentials, then route, so that strangers learn nothing of the rest. */
export class Dispatcher {
  readonly #ports: DispatchPorts;
  readonly #running = new Set<Promise<void>>();
  readonly #upgraded = new Set<Duplex>();
  /** Of each connection on which something is being answered: what waits for that. */
  readonly #lines = new WeakMap<Socket, (() => void)[]>();

  constructor(ports: DispatchPorts) {
    this.#ports = ports;
  }

  /** Requests of one connection are answered one after the other, whatever the client sends ahead. */
  request(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    // What fails on its way out is the end of that answer, never of the agent.
    response.on("error", () => response.destroy());
    const begin = (): void => {
      endWithConnection(response, socket);
      response.once("close", () => this.#beginNext(socket));
      this.#own(this.#answer(request, response, undefined));
    };
    const line = this.#lines.get(socket);
    if (line === undefined) {
      this.#lines.set(socket, []);
      begin();
    } else if (line.length < mostSentAhead) line.push(begin);
    else socket.destroy();
  }

  #beginNext(socket: Socket): void {
    // Answers that were to follow on a connection that is closing are never heard of again, not even of their end.
    const next = socket.destroyed || socket.writableEnded ? undefined : this.#lines.get(socket)?.shift();
    if (next === undefined) this.#lines.delete(socket);
    else next();
  }

  /** Whether an earlier request of the connection is still being answered, by us or by Node itself. */
  isAnswering(request: IncomingMessage): boolean {
    const { socket } = request;
    return this.#lines.has(socket) || hasAnswerOnIt(request, socket);
  }

  /** Whether the request's path is one where another protocol may be spoken. */
  mayUpgrade(request: IncomingMessage): boolean {
    const target = parseTarget(request.url ?? "");
    if (target.type !== "path") return false;
    const found = findMount(this.#ports.mounts, target.path);
    return found?.type === "mount" && found.mount.type === "service" && found.mount.upgrades === true;
  }

  /**
   * A request for another protocol, where one may be spoken. Unless a handler takes the connection over it gets a plain
   * answer, which must be short: nobody tells this response when its connection can take more.
   */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const response = new ServerResponse(request);
    response.on("error", () => response.destroy());
    response.shouldKeepAlive = false;
    // Node wants to know the connection as a Socket; it uses nothing that a Duplex lacks.
    response.assignSocket(socket as Socket);
    response.on("finish", () => {
      response.detachSocket(socket as Socket);
      endAndLeave(socket, this.#ports.clock);
    });
    this.#upgraded.add(socket);
    socket.on("close", () => this.#upgraded.delete(socket));
    // A client that vanishes is no failure of ours.
    socket.on("error", () => socket.destroy());
    // Only a connection that is read from tells that its client has vanished. Nothing is lost: what comes is kept.
    socket.read(0);
    this.#own(this.#answer(request, response, { socket, head }));
  }

  cutUpgraded(): void {
    for (const socket of this.#upgraded) socket.destroy();
  }

  /** Resolves when no request is being answered any more. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await allEnded(this.#running);
  }

  #own(work: Promise<void>): void {
    const owned = work
      .catch((error: unknown) => this.#ports.log.error("A request was not answered", error))
      .finally(() => this.#running.delete(owned));
    this.#running.add(owned);
  }

  async #answer(request: IncomingMessage, response: ServerResponse, upgrade: Upgrade | undefined): Promise<void> {
    const { log, clock, onRequest } = this.#ports;
    const method = request.method ?? "";
    const startedAt = clock.monotonic();
    // Asked now: a request that was given up has no connection any more.
    const from = `${request.socket.remoteAddress}:${request.socket.remotePort}`;
    let path = "";
    let done = (): void => {};
    try {
      const target = parseTarget(request.url ?? "");
      if (target.type === "malformed") return sendText(response, 400, `400 Bad Request: ${target.why}\n`);
      if (target.type === "redirect") return redirect(request, response, target.location);
      path = target.path;
      done = onRequest(method, path);
      await this.#route({ request, response, path, query: target.query, upgrade });
    } catch (error) {
      if (!(error instanceof AnswerError)) log.error("Request failed", error, { method, path });
      if (response.headersSent || upgrade?.socket.destroyed) response.destroy();
      else if (error instanceof AnswerError) sendText(response, error.status, error.message, error.headers);
      else sendText(response, 500, `recover from panic situation: - ${messageOf(error)}\n`);
    } finally {
      done();
      const durationMs = Math.round(clock.monotonic() - startedAt);
      log.debug(4, "HTTP", { method, path, status: response.statusCode, durationMs, from });
    }
  }

  async #route(call: Omit<ApiCall, "params">): Promise<void> {
    const { request, response, path } = call;
    const found = findMount(this.#ports.mounts, path);
    if (found === undefined) return sendText(response, 404, "404 page not found\n");
    if (found.type === "redirect") {
      const query = call.query.size === 0 ? "" : `?${call.query}`;
      return redirect(request, response, found.location + query);
    }
    const refusal = await this.#ports.gate.refuse(request, path);
    if (refusal !== undefined) return sendText(response, refusal.status, refusal.text);
    this.#ports.onLetIn?.(request.socket);
    const match = matchRoute(found.mount, request.method ?? "", path, request.headers.accept);
    if (match.type === "refused") {
      if (match.allow !== undefined) response.setHeader("Allow", match.allow.join(", "));
      return sendText(response, match.status, match.text);
    }
    await this.#traced(call, found.mount, async () => match.handle({ ...call, params: match.params }));
  }

  /** A request of somebody who follows a trace is a span of it; only of those who were let in. */
  async #traced({ request, response }: Omit<ApiCall, "params">, mount: ApiMount, handle: () => Promise<void>) {
    const { tracer = noTracer } = this.#ports;
    const { traceparent } = request.headers;
    const method = request.method ?? "";
    const route = mount.type === "paths" ? "/healthz" : mount.path;
    const attributes = { "http.method": method, "http.route": route };
    const parent = typeof traceparent === "string" ? { traceparent } : {};
    await tracer.span({ name: `${method} ${route}`, kind: "server", attributes, ...parent }, async (note) => {
      await handle();
      note("http.status_code", response.statusCode);
    });
  }
}

/** Node refuses malformed requests by itself, and tells only whoever wants to answer on the same connection. */
function hasAnswerOnIt(request: IncomingMessage, socket: Socket): boolean {
  const another = new ServerResponse(request);
  try {
    another.assignSocket(socket);
  } catch {
    return true;
  }
  another.detachSocket(socket);
  return false;
}

function redirect(request: IncomingMessage, response: ServerResponse, location: string): void {
  const shown = location.replaceAll("&", "&amp;").replaceAll('"', "&#34;").replaceAll("<", "&lt;");
  const body = ["GET", "HEAD"].includes(request.method ?? "") ? `<a href="${shown}">Moved Permanently</a>.\n\n` : "";
  response.writeHead(301, { Location: location, "Content-Type": "text/html; charset=utf-8" });
  response.end(body);
}

/**
 * Has an answer end when its connection does. Node sees to that for the one answer it holds to be the connection's, and
 * an answer that waits for another, or that was begun as the connection went, may not be it: whoever writes to it would
 * wait for ever, with files open.
 */
function endWithConnection(response: ServerResponse, socket: Socket): void {
  const end = (): void => {
    // After Node, which tells it within the same event.
    queueMicrotask(() => {
      if (response.closed) return;
      response.destroy();
      response.emit("close");
    });
  };
  if (socket.closed) end();
  else {
    socket.once("close", end);
    response.once("close", () => socket.off("close", end));
  }
}
