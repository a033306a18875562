import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { messageOf } from "../../base/index.ts";
import { ApiError } from "../api-error.ts";
import type { KeyPair } from "../auth/certificates.ts";
import { callTarget, unreachable } from "./forward.ts";
import type { ProxyTarget } from "./target.ts";

/** Joins a client that wants to change protocols with the target, byte for byte once both agree. */
export async function splice(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  target: ProxyTarget,
  identity: KeyPair,
): Promise<void> {
  const call = callTarget(target, { method: request.method ?? "GET", headers: passedHeaders(request) }, identity);
  client.once("close", () => call.destroy());
  call.end();
  const outcome = await Promise.race([
    once(call, "upgrade").then(([response, socket, rest]) => ({ type: "agreed" as const, response, socket, rest })),
    once(call, "response").then(([response]) => ({ type: "refused" as const, response })),
  ]).catch((error: unknown) => ({ type: "failed" as const, error }));
  switch (outcome.type) {
    case "agreed":
      client.write(responseHead(outcome.response));
      if (outcome.rest.length > 0) client.write(outcome.rest);
      if (head.length > 0) outcome.socket.write(head);
      join(client, outcome.socket);
      break;
    case "refused": {
      const body = await readText(outcome.response);
      client.end(`${responseHead(outcome.response, ["content-length", "transfer-encoding"], body.length)}${body}`);
      break;
    }
    case "failed":
      refuse(client, unreachable(target, outcome.error));
  }
}

/** Ends a connection that was to change protocols with an ordinary answer. */
export function refuse(client: Duplex, error: unknown): void {
  const failure = error instanceof ApiError ? error : new ApiError(500, "InternalError", messageOf(error));
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

function responseHead(response: IncomingMessage, without: readonly string[] = [], length?: number): string {
  const lines = [`HTTP/1.1 ${response.statusCode} ${response.statusMessage}`];
  const { rawHeaders } = response;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (!without.includes(rawHeaders[index]?.toLowerCase() ?? ""))
      lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  }
  if (length !== undefined) lines.push(`content-length: ${length}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}

function join(one: Duplex, other: Duplex): void {
  const end = (): void => {
    one.destroy();
    other.destroy();
  };
  for (const side of [one, other]) side.once("error", end).once("close", end);
  one.pipe(other);
  other.pipe(one);
}
