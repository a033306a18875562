import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../../ground/base/index.ts";
import { sendText } from "./http.ts";
import type { DoctorSummary } from "./ports.ts";
import { readRequestText } from "./read-request-text.ts";

const longestBody = 4 * 1024;
const mostStates = 16;

/** PUT of what `nodelet doctor` came to: `{"at": "2026-…", "summary": {"fail": 1, …}}`. */
export async function takeDoctorSummary(
  request: IncomingMessage,
  response: ServerResponse,
  examined: (found: DoctorSummary) => void,
): Promise<void> {
  if (request.method !== "PUT") return sendText(response, 405, "want PUT\n", { Allow: "PUT" });
  try {
    examined(summaryIn(await readRequestText(request, longestBody)));
    sendText(response, 200, "ok\n");
  } catch (error) {
    // Whatever else comes of the body is read past, so that the client gets to read the refusal.
    request.resume();
    sendText(response, 400, `${messageOf(error)}\n`, { Connection: "close" });
  }
}

function summaryIn(body: string): DoctorSummary {
  const { at, summary }: { readonly at?: unknown; readonly summary?: unknown } = JSON.parse(body) ?? {};
  const atMs = typeof at === "string" ? Date.parse(at) : Number.NaN;
  if (Number.isNaN(atMs)) throw new Error("at is no time");
  const counts = Object.entries(typeof summary === "object" && summary !== null ? summary : {});
  const areCounts = counts.every(
    ([state, count]) => /^[a-z/]{1,16}$/.test(state) && Number.isSafeInteger(count) && count >= 0,
  );
  if (counts.length === 0 || counts.length > mostStates || !areCounts) throw new Error("summary holds no counts");
  return { atMs, counts: new Map(counts as [string, number][]) };
}
