import type { Readable } from "node:stream";
import { messageOf } from "../../ground/base/index.ts";
import { ConnectionError } from "./transport/index.ts";

/**
 * A page of 500 objects of the 1.5 MB that etcd takes at most would be longer, but no page of a node's own objects is;
 * what is longer than this comes from no API server, and would be held in memory several times while it is read.
 */
const longestAnswer = 256 * 1024 * 1024;

/** All of a body as text; rejects with ConnectionError when it breaks off or does not end. */
export async function readText(body: Readable, signal: AbortSignal, limit = longestAnswer): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.length;
      if (length > limit) throw new Error(`more than ${limit} bytes`);
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw new ConnectionError(`The API server's answer broke off: ${messageOf(error)}`, "maybe", error);
  }
  return parts.length === 1 ? (parts[0] as Buffer).toString("utf8") : Buffer.concat(parts).toString("utf8");
}
