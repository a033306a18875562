import type { Http2ServerResponse } from "node:http2";
import type { Reply } from "./reply.ts";

// A client that reads this much slower than things happen is better off starting again.
const mostUnreadBytes = 16 * 1024 * 1024;

/** Writes the events of a watch as lines of JSON until either side has enough. `open` holds how to end those that run. */
export function streamWatch(
  reply: Reply & { readonly type: "watch" },
  response: Http2ServerResponse,
  open: Set<() => void>,
): void {
  let stop = (): void => {};
  let isOpen = true;
  const close = (): void => {
    isOpen = false;
    open.delete(close);
    stop();
  };
  open.add(close);
  response.once("close", close);
  response.once("error", close);
  response.writeHead(200, { "content-type": "application/json" });
  flushHead(response);
  stop = reply.start(
    (event) => {
      if (!isOpen) return;
      response.write(`${JSON.stringify(event)}\n`);
      if ((response.stream?.writableLength ?? response.writableLength) > mostUnreadBytes) {
        close();
        response.destroy();
      }
    },
    () => {
      if (!isOpen) return;
      close();
      response.end();
    },
  );
  if (!isOpen) stop();
}

/** The client learns that its watch stands before the first event, which may be long in coming. */
export function flushHead(response: Http2ServerResponse): void {
  const { flushHeaders } = response as { flushHeaders?: () => void };
  flushHeaders?.call(response);
}
