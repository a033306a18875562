import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { ListenOptions } from "node:net";
import type { Writable } from "node:stream";
import { outliveFailedAccepts, untilAborted } from "../../ground/base/index.ts";

/** Answers one request; what it throws becomes a 500. */
export type Handler = (request: IncomingMessage, url: URL, response: ServerResponse) => void | Promise<void>;

/** Paths are exact; a trailing slash is ignored. */
export type Routes = ReadonlyMap<string, Handler>;

/** Who may connect to a port of the machine may do so without end; the descriptors are those of all the agent's work. */
export const mostConnections = 1_000;

/** `otherwise` answers paths that are no routes; without it they get 404. */
export function httpServer(
  routes: Routes,
  onFailure: (error: unknown, path: string) => void,
  otherwise?: Handler,
): Server {
  const listener: RequestListener = (request, response) => {
    const url = parseUrl(request.url ?? "/");
    const path = url === undefined ? undefined : withoutTrailingSlashes(url.pathname);
    const handler = path === undefined ? undefined : (routes.get(path) ?? otherwise);
    if (url === undefined || handler === undefined) {
      sendText(response, 404, "404 page not found\n");
      return;
    }
    const fail = (error: unknown): void => {
      onFailure(error, url.pathname);
      if (response.headersSent) response.destroy();
      else sendText(response, 500, "internal server error\n");
    };
    try {
      void Promise.resolve(handler(request, url, response)).catch(fail);
    } catch (error) {
      fail(error);
    }
  };
  const server = createServer(listener);
  server.maxConnections = mostConnections;
  return server;
}

/** By hand: a regular expression looks again from every slash, and whoever may connect chooses how many there are. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (end > 1 && path[end - 1] === "/") end--;
  return path.slice(0, end);
}

function parseUrl(target: string): URL | undefined {
  try {
    return new URL(target, "http://localhost");
  } catch {
    return undefined;
  }
}

/** Resolves when the server accepts connections, rejects when it cannot. */
export async function listen(server: Server, where: ListenOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(where, () => {
      server.off("error", reject);
      outliveFailedAccepts(server);
      resolve();
    });
  });
}

/**
 * Serves until aborted, then drops all connections. Rejects when the listener breaks before; that one connection could
 * not be accepted, for want of memory or by a firewall's rule, breaks nothing.
 */
export async function serve(server: Server, signal: AbortSignal): Promise<void> {
  const broken = new Promise<never>((_, reject) => {
    server.on("error", (error: NodeJS.ErrnoException) => {
      if (error.syscall !== "accept") reject(error);
    });
  });
  try {
    await Promise.race([untilAborted(signal), broken]);
  } finally {
    await close(server);
  }
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    ...headers,
    "Content-Type": "text/plain; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "Content-Length": Buffer.byteLength(text),
  });
  response.end(text);
}

export function sendJson(response: ServerResponse, value: unknown): void {
  const text = JSON.stringify(value);
  response.writeHead(200, {
    "Content-Type": "application/json",
    "X-Content-Type-Options": "nosniff",
    "Content-Length": Buffer.byteLength(text),
  });
  response.end(text);
}

/** Fires when the client is gone before its answer was complete. */
export function untilClientLeaves(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const onClose = (): void => {
    if (!response.writableFinished) controller.abort(new DOMException("the client has left", "AbortError"));
  };
  // It may have left while the request was looked at.
  if (response.destroyed) onClose();
  else response.once("close", onClose);
  return controller.signal;
}

/**
 * Writes a piece of the answer into `output`: the response, or what leads to it. Resolves when it has left our hands, and
 * fails when the client has left.
 */
export function writePiece(response: ServerResponse, output: Writable, piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => reject(new DOMException("the client has left", "AbortError"));
    response.once("close", onClose);
    output.write(piece, (error) => {
      response.off("close", onClose);
      if (error) reject(error);
      else resolve();
    });
    if (response.destroyed) onClose();
  });
}

/** Only GET reaches the handler; anything else is answered as the kubelet's router does. */
export function getOnly(handler: Handler): Handler {
  return (request, url, response) => {
    if (request.method === "GET") return handler(request, url, response);
    response.setHeader("Allow", "GET");
    sendText(response, 405, "405: Method Not Allowed");
  };
}
