import { MetricText } from "../../../ground/metrics/index.ts";
import type { ApiCall } from "../api/router.ts";
import { writePiece } from "../http.ts";

const contentType = "text/plain; version=0.0.4; charset=utf-8";

/** Answers with metrics, compressed for who can read that. */
export async function sendMetrics(
  { request, response }: Pick<ApiCall, "request" | "response">,
  write: (text: MetricText) => Promise<void>,
): Promise<void> {
  const packs = /(^|,)\s*gzip\s*(;|,|$)/.test(request.headers["accept-encoding"] ?? "");
  response.writeHead(200, { "Content-Type": contentType, ...(packs ? { "Content-Encoding": "gzip" } : {}) });
  // Level 1: figures change all the time, so what they are packed into is thrown away at once.
  const output = packs ? (await import("node:zlib")).createGzip({ level: 1 }) : response;
  if (output !== response) output.pipe(response);
  const text = new MetricText((piece) => writePiece(response, output, piece));
  try {
    await write(text);
    await text.flush();
    output.end();
  } catch (error) {
    const hasLeft = response.destroyed;
    // The status is sent: all that is left is not to look complete.
    response.destroy();
    if (!hasLeft) throw error;
  }
}
