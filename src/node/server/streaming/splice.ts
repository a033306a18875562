import type { IncomingMessage } from "node:http";
import { connect, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { type Clock, messageOf, systemNames } from "../../../ground/base/index.ts";
import { AnswerError } from "../api/answer-error.ts";
import type { ApiCall, Upgrade } from "../api/router.ts";
import { withoutToken } from "../auth/bearer.ts";
import { cutSilentHalf } from "./half-open.ts";

const longestHead = 64 * 1024;
const refusalMs = 10_000;
// A runtime that takes longer to open what it has just promised is not going to.
const dialMs = 10_000;
const answerMs = 30_000;

/**
 * Connects a client that asked for an upgrade with the runtime's streaming server. The request goes there with its
 * own method and headers; once the runtime has agreed, bytes are passed both ways unread, each way at the speed of
 * its reader. Resolves when the connection has ended.
 */
export async function spliceToRuntime(call: ApiCall, runtimeUrl: string, clock: Clock): Promise<void> {
  const { request, response, upgrade } = call;
  if (upgrade === undefined) throw new AnswerError(500, "Upgrade request required");
  const url = new URL(runtimeUrl.includes("://") ? runtimeUrl : `http://${runtimeUrl}`);
  const backend = await dial(url, upgrade.socket, clock);
  const gone = closed(backend);
  const giveUp = (): void => void backend.destroy();
  upgrade.socket.once("close", giveUp);
  try {
    if (upgrade.socket.destroyed) return;
    backend.write(requestHead(request, url));
    backend.write(upgrade.head);
    const head = await readHead(backend, clock);
    if (upgrade.socket.destroyed) return;
    if (head.status < 400 && head.status !== 101) {
      throw new AnswerError(500, `invalid upgrade response: status code ${head.status}`);
    }
    // From here on the connection is spoken for byte by byte.
    response.detachSocket(request.socket);
    upgrade.socket.write(head.bytes);
    await (head.status === 101 ? join(upgrade, backend, clock) : passRefusal(upgrade, backend, clock));
  } finally {
    upgrade.socket.off("close", giveUp);
    backend.destroy();
    await gone;
  }
}

async function dial(url: URL, client: Duplex, clock: Clock): Promise<Socket> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const secure = url.protocol === "https:";
  const where = {
    host,
    port: Number(url.port || (secure ? 443 : 80)),
    allowHalfOpen: true,
    noDelay: true,
    lookup: systemNames.lookup,
  };
  const socket = secure ? connectTls({ ...where, servername: host }) : connect(where);
  const giveUp = (): void => void socket.destroy(new Error("the client has left"));
  client.once("close", giveUp);
  if (client.destroyed) giveUp();
  const timer = clock.after(dialMs, () => socket.destroy(new Error("the runtime's stream did not answer")));
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once(secure ? "secureConnect" : "connect", resolve);
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("the connection was closed")));
    });
    return socket;
  } catch (error) {
    throw new AnswerError(500, `error dialing backend: ${messageOf(error)}`);
  } finally {
    timer.cancel();
    client.off("close", giveUp);
  }
}

/** The client's request as it was, but to the runtime's path and without the client's credentials. */
function requestHead(request: IncomingMessage, url: URL): string {
  const lines = [`${request.method} ${url.pathname}${url.search} HTTP/1.1`];
  const forwardedFor: string[] = [];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index] ?? "";
    const value = request.rawHeaders[index + 1] ?? "";
    const lower = name.toLowerCase();
    if (lower === "x-forwarded-for") forwardedFor.push(value);
    else if (lower === "sec-websocket-protocol") lines.push(`${name}: ${withoutToken(value)}`);
    else if (lower !== "authorization") lines.push(`${name}: ${value}`);
  }
  lines.push(`X-Forwarded-For: ${[...forwardedFor, request.socket.remoteAddress ?? ""].join(", ")}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}

interface Head {
  readonly status: number;
  /** The head and whatever came with it. */
  readonly bytes: Buffer;
}

async function readHead(backend: Socket, clock: Clock): Promise<Head> {
  const chunks: Buffer[] = [];
  const complaint = (what: string): AnswerError =>
    new AnswerError(500, `error dialing backend: the runtime's stream ${what}`);
  return await new Promise((resolve, reject) => {
    const timer = clock.after(answerMs, () => settle(() => reject(complaint("did not answer"))));
    const settle = (act: () => void): void => {
      timer.cancel();
      backend.pause();
      backend.off("data", onData).off("end", onEnd).off("close", onEnd);
      act();
    };
    const onEnd = (): void => settle(() => reject(complaint("ended before it began")));
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      const bytes = Buffer.concat(chunks);
      const complete = bytes.includes("\r\n\r\n");
      if (!complete && bytes.length < longestHead) return;
      const status = /^HTTP\/1\.[01] (\d{3})[ \r]/.exec(bytes.subarray(0, 32).toString("latin1"))?.[1];
      if (!complete || status === undefined) settle(() => reject(complaint("does not speak HTTP")));
      else settle(() => resolve({ status: Number(status), bytes }));
    };
    backend.on("data", onData).on("end", onEnd).on("close", onEnd);
  });
}

/** Both ways until both have ended, or until one side is gone. An end of one direction alone is passed on as such. */
async function join({ socket: client }: Upgrade, backend: Socket, clock: Clock): Promise<void> {
  if (client instanceof Socket) client.setNoDelay(true).setKeepAlive(true, 30_000);
  const stopWatching = cutSilentHalf(client, backend, clock);
  client.pipe(backend);
  backend.pipe(client);
  await new Promise<void>((resolve) => {
    client.once("close", resolve);
    backend.once("close", () => flushAndDestroy(client));
  });
  stopWatching();
}

/** The runtime's refusal goes to the client as it is; then both are done. */
async function passRefusal({ socket: client }: Upgrade, backend: Socket, clock: Clock): Promise<void> {
  backend.pipe(client);
  const timer = clock.after(refusalMs, () => client.destroy());
  await new Promise<void>((resolve) => {
    client.once("close", resolve);
    client.once("finish", () => client.destroy());
    backend.once("close", () => flushAndDestroy(client));
  });
  timer.cancel();
}

function flushAndDestroy(socket: Duplex): void {
  if (socket.writableFinished) socket.destroy();
  else socket.end(() => socket.destroy());
}

async function closed(socket: Socket): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.on("error", () => {});
    socket.once("close", () => resolve());
  });
}
