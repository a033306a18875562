import type { Readable } from "node:stream";
import { type Clock, goQuote, LinkedSignal, waitFor } from "../../../ground/base/index.ts";
import { fairDeadline } from "../fair-deadline.ts";
import { clip } from "../outcome.ts";
import type { HeaderField, RequestHeaders } from "./headers.ts";
import { type HttpReply, TransportError } from "./reply.ts";
import { sendGet } from "./transport.ts";
import { type HttpUrl, resolveLocation, sameHost } from "./url.ts";

export interface HttpGetRequest {
  readonly url: HttpUrl;
  readonly headers: RequestHeaders;
  /** Covers connecting, all redirects and the body. undefined: no limit. */
  readonly timeoutMs: number | undefined;
  readonly bodyLimitBytes: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** The request got no (whole) answer; the message is what Go's HTTP client would say. */
export class HttpGetError extends Error {
  override readonly name = "HttpGetError";
  /** "body": the head had arrived, the rest did not. */
  readonly phase: "head" | "body";

  constructor(phase: "head" | "body", message: string, cause?: unknown) {
    super(message, { cause });
    this.phase = phase;
  }

  /** The request was made over TLS, and the server answered in plain HTTP. */
  get isPlainHttpAnswer(): boolean {
    return this.cause instanceof TransportError && this.cause.kind === "plainHttp";
  }
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const maxRequests = 10;

/**
 * GETs a URL, following redirects to the same host name only: whoever controls a container must not make the node send
 * requests elsewhere. A redirect to another host is itself the answer.
 */
export async function httpGet(request: HttpGetRequest, clock: Clock, signal: AbortSignal): Promise<HttpAnswer> {
  signal.throwIfAborted();
  using cancel = new LinkedSignal(signal);
  const timer =
    request.timeoutMs === undefined
      ? undefined
      : fairDeadline(clock, request.timeoutMs, () => cancel.abort(new DeadlineError()));
  try {
    const reply = await follow(request, cancel.signal);
    try {
      return { status: reply.status, body: await readAtMost(reply.body, request.bodyLimitBytes, cancel.signal) };
    } finally {
      reply.close();
    }
  } finally {
    timer?.cancel();
  }
}

class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

async function follow({ url: first, headers }: HttpGetRequest, signal: AbortSignal): Promise<HttpReply> {
  let url = first;
  let host = headers.host;
  let referer: string | undefined;
  for (let sent = 1; ; sent++) {
    const fields = referer === undefined ? headers.fields : withReferer(headers.fields, referer);
    const reply = await send(url, { host, fields }, signal);
    const { status, location } = reply;
    if (!redirectStatuses.has(status) || location === undefined || location === "") return reply;
    const next = resolveLocation(location, url);
    if ("problem" in next) {
      reply.close();
      throw new HttpGetError("head", `Get ${goQuote(clip(location))}: ${next.problem}`);
    }
    if (!sameHost(first, next)) return reply;
    reply.close();
    if (sent >= maxRequests)
      throw new HttpGetError("head", `Get ${goQuote(clip(location))}: stopped after 10 redirects`);
    // A Host header of the user's belongs to the server he named; a location that names a server speaks for itself.
    if (/^[a-z][a-z0-9+.-]*:/i.test(location)) host = undefined;
    referer = url.scheme === "https" && next.scheme === "http" ? undefined : url.text;
    url = next;
  }
}

/** A Referer of the user's own stays. */
function withReferer(fields: readonly HeaderField[], referer: string): readonly HeaderField[] {
  return fields.some(([name]) => name === "Referer") ? fields : [...fields, ["Referer", referer]];
}

async function send(url: HttpUrl, headers: RequestHeaders, signal: AbortSignal): Promise<HttpReply> {
  try {
    return await sendGet(url, headers, signal);
  } catch (error) {
    const prefix = `Get ${goQuote(clip(url.text))}: `;
    if (error instanceof DeadlineError) {
      const text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
      throw new HttpGetError("head", prefix + text, error);
    }
    if (error instanceof TransportError) throw new HttpGetError("head", prefix + error.message, error);
    throw error;
  }
}

/** The body up to the limit; what comes after is not waited for. */
async function readAtMost(body: Readable, limit: number, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  let isOpen = true;
  const whole = waitFor(signal, (done, fail) => {
    const breakOff = (error?: Error): void => fail(new HttpGetError("body", "unexpected EOF", error));
    body.on("data", (chunk: Buffer) => {
      if (!isOpen) return;
      chunks.push(chunk);
      length += chunk.length;
      if (length >= limit) done();
    });
    body.on("end", done);
    body.on("error", breakOff);
    body.on("close", () => breakOff());
    return () => {
      isOpen = false;
    };
  });
  try {
    await whole;
  } catch (error) {
    const text = "context deadline exceeded (Client.Timeout or context cancellation while reading body)";
    throw error instanceof DeadlineError ? new HttpGetError("body", text, error) : error;
  }
  return Buffer.concat(chunks).subarray(0, limit);
}
