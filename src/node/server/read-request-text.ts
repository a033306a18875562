import type { IncomingMessage } from "node:http";

/** The body of a request as text; rejects when it is longer than that. The connection stays, to say so on it. */
export async function readRequestText(request: IncomingMessage, maxBytes: number): Promise<string> {
  return (await readRequestBytes(request, maxBytes)).toString("utf8");
}

/** The same as it came. */
export async function readRequestBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop must not break the connection: the refusal is still to be sent on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the body is longer than ${maxBytes} bytes`);
  }
  return Buffer.concat(chunks);
}
