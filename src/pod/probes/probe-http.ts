import type { Clock } from "../../ground/base/index.ts";
import { isOwnLack } from "./http/dial-errors.ts";
import { HttpGetError, httpGet } from "./http/get.ts";
import { outputLimitBytes, type ProbeOutcome } from "./outcome.ts";
import type { ProbeTarget } from "./target.ts";

/** Healthy when the container answers with a status from 200 to 399. */
export async function probeHttp(
  { url, headers }: ProbeTarget & { readonly type: "http" },
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  try {
    const { status, body } = await httpGet(
      { url, headers, timeoutMs, bodyLimitBytes: outputLimitBytes },
      clock,
      signal,
    );
    if (status >= 200 && status < 300) return { type: "success" };
    if (status >= 300 && status < 400) {
      return { type: "warning", output: `Probe terminated redirects, Response body: ${body.toString()}` };
    }
    // The body stays out: it may hold what the reader of events must not see.
    return { type: "failure", output: `HTTP probe failed with statuscode: ${status}` };
  } catch (error) {
    if (!(error instanceof HttpGetError)) throw error;
    // A container that answers but does not finish is neither well nor ill: upstream discards it, and so do we.
    if (error.phase === "body") return { type: "error", state: "failure", message: error.message };
    if (isOwnLack(url.hostname, rootOf(error))) return { type: "error", state: "unknown", message: error.message };
    return { type: "failure", output: error.message };
  }
}

function rootOf(error: Error): unknown {
  return error.cause instanceof Error && error.cause.cause !== undefined ? error.cause.cause : error.cause;
}
