import type { Readable } from "node:stream";
import type { Status } from "../../../ground/model/index.ts";
import type { KubeObject } from "../resources.ts";

export type StreamEvent<Kind> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: Kind }
  | { readonly type: "BOOKMARK"; readonly object: KubeObject }
  | { readonly type: "ERROR"; readonly object: Status };

/** A watch brought something that is not an event. */
export class GarbledWatchError extends Error {
  override readonly name = "GarbledWatchError";
}

const longestEvent = 64 * 1024 * 1024;
const newline = 0x0a;
const eventTypes: ReadonlySet<unknown> = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]);

/** The complete events of a watch; one that breaks off in the middle was not sent. */
export async function* eventsOf<Kind>(body: Readable): AsyncGenerator<StreamEvent<Kind>, void, undefined> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const last = chunk.subarray(start, end);
      start = end + 1;
      const line = parts.length === 0 ? last : Buffer.concat([...parts, last]);
      parts = [];
      length = 0;
      if (line.length > 0) yield parseEvent<Kind>(line);
    }
    if (start === chunk.length) continue;
    parts.push(start === 0 ? chunk : chunk.subarray(start));
    length += chunk.length - start;
    if (length > longestEvent) throw new GarbledWatchError(`an event of more than ${longestEvent} bytes`);
  }
}

function parseEvent<Kind>(line: Buffer): StreamEvent<Kind> {
  let event: unknown;
  try {
    event = JSON.parse(line.toString("utf8"));
  } catch {
    throw new GarbledWatchError("a line that is not JSON");
  }
  if (typeof event !== "object" || event === null || !("type" in event) || !("object" in event)) {
    throw new GarbledWatchError("a line that is not an event");
  }
  if (!eventTypes.has(event.type)) throw new GarbledWatchError(`an event of the unknown type ${String(event.type)}`);
  if (typeof event.object !== "object" || event.object === null)
    throw new GarbledWatchError("an event without an object");
  return event as StreamEvent<Kind>;
}
