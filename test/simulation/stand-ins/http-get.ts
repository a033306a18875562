// In place of pod/probes/http/get.ts.
import type { Clock } from "../../../src/ground/base/index.ts";
import type { HttpAnswer, HttpGetRequest } from "../../../src/pod/probes/http/get.ts";
import { dial } from "./dial.ts";

export class HttpGetError extends Error {
  override readonly name = "HttpGetError";
  readonly phase: "head" | "body" = "head";

  get isPlainHttpAnswer(): boolean {
    return false;
  }
}

export async function httpGet(request: HttpGetRequest, clock: Clock, signal: AbortSignal): Promise<HttpAnswer> {
  const { url, timeoutMs } = request;
  const outcome = await dial(url.hostname, url.port, timeoutMs, clock, signal);
  if (outcome !== "accepts") throw new HttpGetError(`Get "http://${url.hostname}": ${outcome}`);
  return { status: 200, body: Buffer.from("ok") };
}
