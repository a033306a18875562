import type { Readable } from "node:stream";
import { messageOf } from "../base/index.ts";
import { ConnectionError } from "./transport/index.ts";

/** All of a body as text; rejects with ConnectionError when it breaks off. */
export async function readText(body: Readable, signal: AbortSignal): Promise<string> {
  const parts: Buffer[] = [];
  try {
    for await (const part of body as AsyncIterable<Buffer>) parts.push(part);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw new ConnectionError(`The API server's answer broke off: ${messageOf(error)}`, "maybe", error);
  }
  return parts.length === 1 ? (parts[0] as Buffer).toString("utf8") : Buffer.concat(parts).toString("utf8");
}
