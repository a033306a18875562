import type { Readable } from "node:stream";
import type { Headers } from "../access/index.ts";

/** One request to the API server; the path carries the query. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly headers: Headers;
  readonly body: string | undefined;
}

export interface HttpResponse {
  readonly status: number;
  header(name: string): string | undefined;
  /** To be read to its end, or destroyed. */
  readonly body: Readable;
}

/** One connection, or several that look like one. */
export interface Connection {
  /** False once no more requests may be sent on it: it is full, being given up, or gone. */
  readonly hasRoom: boolean;
  /** False once nothing can be under way on it any more. */
  readonly isOpen: boolean;
  /** Nothing is under way on it. */
  readonly isIdle: boolean;
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>;
  /** No new requests; what is under way may end within the time given, then all is cut. */
  retire(graceMs: number): void;
  destroy(reason: Error): void;
}

/** The API server could not be reached, or the connection to it broke. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  /** "no": the server has certainly not seen the request. */
  readonly sent: "no" | "maybe";

  constructor(message: string, sent: "no" | "maybe", cause?: unknown) {
    super(message, { cause });
    this.sent = sent;
  }
}
