import type { Readable } from "node:stream";

/** The head of an answer, with its body still to be read. */
export interface HttpReply {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: Readable;
  /** Ends the connection, whatever is left of the body. */
  close(): void;
}

/** No answer came; the message says why in the words of Go's HTTP client. */
export class TransportError extends Error {
  override readonly name = "TransportError";
  /** "plainHttp": a server that was spoken to in TLS does not know it. */
  readonly kind: "plainHttp" | "other";

  constructor(message: string, cause: unknown, kind: "plainHttp" | "other" = "other") {
    super(message, { cause });
    this.kind = kind;
  }
}
