import type { Http2ServerResponse } from "node:http2";
import type { JsonObject } from "../json.ts";
import type { Reply } from "./reply.ts";

/**
 * Events that wait for a client hold objects that the server has anyway, or had a moment ago. A client that falls this far
 * behind is better off starting again.
 */
const mostWaiting = 10_000;

type WatchReply = Reply & { readonly type: "watch" };

/** Writes the events of a watch as lines of JSON until either side has enough. `open` holds how to end those that run. */
export function streamWatch(reply: WatchReply, response: Http2ServerResponse, open: Set<() => void>): void {
  const waiting: JsonObject[] = [];
  let next = 0;
  let stop = (): void => {};
  let state: "open" | "ending" | "closed" = "open";
  let isFull = false;
  const close = (): void => {
    state = "closed";
    waiting.length = 0;
    open.delete(close);
    stop();
  };
  /** Only as much is turned into text as the client takes, so that one that does not read costs next to nothing. */
  const write = (): void => {
    while (state !== "closed" && !isFull && next < waiting.length) {
      isFull = !response.write(`${lineOf(waiting[next] ?? {})}\n`);
      next++;
    }
    if (next >= waiting.length) {
      waiting.length = 0;
      next = 0;
    }
    if (state === "ending" && waiting.length === 0) {
      close();
      response.end();
    }
  };
  open.add(close);
  response.once("close", close);
  response.once("error", close);
  response.on("drain", () => {
    isFull = false;
    write();
  });
  response.writeHead(200, { "content-type": "application/json" });
  flushHead(response);
  // What is there at the start may be more than what may happen while a client sleeps.
  let most = Number.POSITIVE_INFINITY;
  stop = reply.start(
    (event) => {
      if (state !== "open") return;
      waiting.push(event);
      if (waiting.length - next <= most) return void write();
      close();
      response.destroy();
    },
    () => {
      if (state !== "open") return;
      state = "ending";
      stop();
      write();
    },
  );
  most = waiting.length + mostWaiting;
  // It may have ended before it could be told how to stop.
  if (state !== "open") stop();
}

let last: { readonly object: unknown; readonly text: string } = { object: undefined, text: "" };

/** Many watch the same, one after the other: what was turned into text a moment ago is not turned again. */
function lineOf(event: JsonObject): string {
  const { type, object } = event;
  if (last.object !== object || !Object.isFrozen(object)) last = { object, text: JSON.stringify(object) };
  return `{"type":${JSON.stringify(type)},"object":${last.text}}`;
}

/** The client learns that its watch stands before the first event, which may be long in coming. */
export function flushHead(response: Http2ServerResponse): void {
  const { flushHeaders } = response as { flushHeaders?: () => void };
  flushHeaders?.call(response);
}
