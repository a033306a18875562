import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import { messageOf } from "../../../ground/base/index.ts";
import type { KeyPair } from "../auth/certificates.ts";
import { StatusError } from "../status-error.ts";
import { callTarget, unreachable } from "./forward.ts";
import type { ProxyTarget } from "./target.ts";

/** A client that waits to change protocols is not read, so that its leaving is not seen; this ends the wait. */
const answerWithinMs = 60_000;
/** How long one side may take nothing of what the other has said last. */
const lastWordsMs = 60_000;

/** Joins a client that wants to change protocols with the target, byte for byte once both agree. */
export async function spliceToTarget(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  target: ProxyTarget,
  identity: KeyPair,
): Promise<void> {
  const left = new AbortController();
  client.once("close", () => left.abort());
  const passed = { method: request.method ?? "GET", headers: passedHeaders(request) };
  const call = callTarget(target, passed, identity, left.signal);
  call.setTimeout(answerWithinMs, () => call.destroy(new Error(`no answer within ${answerWithinMs / 1000} s`)));
  call.end();
  const outcome = await Promise.race([
    once(call, "upgrade").then(([response, socket, rest]) => ({ type: "agreed" as const, response, socket, rest })),
    once(call, "response").then(([response]) => ({ type: "refused" as const, response })),
  ]).catch((error: unknown) => ({ type: "failed" as const, error }));
  switch (outcome.type) {
    case "agreed":
      outcome.socket.setTimeout(0);
      client.write(responseHead(outcome.response));
      if (outcome.rest.length > 0) client.write(outcome.rest);
      if (head.length > 0) outcome.socket.write(head);
      join(client, outcome.socket);
      break;
    case "refused":
      client.write(responseHead(outcome.response, ["transfer-encoding", "connection"], "connection: close"));
      pipeline(outcome.response, client, () => {});
      break;
    case "failed":
      refuse(client, unreachable(target, outcome.error));
  }
}

/** Ends a connection that was to change protocols with an ordinary answer. */
export function refuse(client: Duplex, error: unknown): void {
  const failure = error instanceof StatusError ? error : new StatusError(500, "InternalError", messageOf(error));
  const body = JSON.stringify(failure.status());
  const head = `HTTP/1.1 ${failure.code} ${failure.reason || "Error"}\r\ncontent-type: application/json\r\n`;
  client.end(`${head}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`);
}

const notPassed = new Set(["host", "authorization", "content-length", "transfer-encoding"]);

/** What the client sent, in its order and multiplicity, without what was meant for us alone. */
function passedHeaders({ rawHeaders }: IncomingMessage): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? "";
    if (notPassed.has(name)) continue;
    headers[name] = [...(headers[name] ?? []), rawHeaders[index + 1] ?? ""];
  }
  return headers;
}

function responseHead(response: IncomingMessage, without: readonly string[] = [], ...added: readonly string[]): string {
  const lines = [`HTTP/1.1 ${response.statusCode} ${response.statusMessage}`];
  const { rawHeaders } = response;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (!without.includes(rawHeaders[index]?.toLowerCase() ?? ""))
      lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  }
  return `${[...lines, ...added].join("\r\n")}\r\n\r\n`;
}

/** Byte for byte, both ways. What one side said last still reaches the other, however slowly that reads. */
export function join(one: Duplex, other: Duplex): void {
  for (const [side, peer] of [
    [one, other],
    [other, one],
  ] as const) {
    side.on("error", () => {});
    side.once("close", () => endAfterLastWords(peer));
    side.pipe(peer);
  }
}

function endAfterLastWords(socket: Duplex): void {
  if (socket.writableFinished || socket.destroyed) return void socket.destroy();
  if (socket instanceof Socket) socket.setTimeout(lastWordsMs, () => socket.destroy());
  socket.end(() => socket.destroy());
}
