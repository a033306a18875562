import type { IncomingMessage } from "node:http";
import type { Clock } from "../../ground/base/index.ts";
import { type Handler, sendText } from "./http.ts";
import { answerPlan } from "./plan-answer.ts";
import type { PlanManifest } from "./ports.ts";
import { readRequestBytes } from "./read-request-text.ts";

/**
 * Less than a file may have: of what a megabyte can hold at worst (20,000 containers) the agent's own thread is busy for
 * a second, and nobody is to hold it up longer only by asking. API servers store no larger pods.
 */
const longestManifest = 2 ** 20;

/** `nodelet apply --dry-run`: the body is a manifest, `name` the file that it would be put into. */
export function manifestPlanRoute(plan: PlanManifest, clock: Clock): Handler {
  return async (request, url, response) => {
    if (request.method !== "POST") return sendText(response, 405, "want POST\n", { Allow: "POST" });
    const name = url.searchParams.get("name") ?? "";
    const bytes = isFileName(name) ? await manifestOf(request) : undefined;
    if (bytes !== undefined) return answerPlan(response, clock, (signal) => plan({ name, bytes }, signal));
    const why = isFileName(name)
      ? "only manifests of at most 1 MiB are looked at without being run"
      : "the name of a file is missing, without directories and not hidden: ?name=web.yaml";
    // What is still to come is not read.
    request.resume();
    sendText(response, 400, `${why}\n`, { Connection: "close" });
  };
}

async function manifestOf(request: IncomingMessage): Promise<Uint8Array | undefined> {
  return await readRequestBytes(request, longestManifest).catch(() => undefined);
}

/** As files of manifests are named: others are passed over. */
function isFileName(name: string): boolean {
  return /^[^./\0][^/\0]{0,254}$/.test(name);
}
