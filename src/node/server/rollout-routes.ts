import type { IncomingMessage, ServerResponse } from "node:http";
import { type Logger, messageOf } from "../../ground/base/index.ts";
import { getOnly, type Handler, sendJson, sendText } from "./http.ts";
import type { RolloutDesk, RolloutFile } from "./ports.ts";
import { readRequestText } from "./read-request-text.ts";

const longestFile = 2 ** 20;
const shortestTrialMs = 5_000;
const longestTrialMs = 24 * 3_600_000;

/** `nodelet config diff, try, keep, back, history`, as requests on the local socket. */
export function rolloutRoutes(desk: RolloutDesk | undefined, log: Logger): readonly (readonly [string, Handler])[] {
  if (desk === undefined) return [];
  return [
    ["/rollout", getOnly((_request, _url, response) => sendJson(response, desk.report() ?? {}))],
    [
      "/rollout/diff",
      posted(async (request, url, response) => sendJson(response, await desk.compare(await fileOf(request, url)))),
    ],
    ["/rollout/try", posted((request, url, response) => tryOut(desk, request, url, response, log))],
    ["/rollout/keep", posted((_request, _url, response) => desk.keep().then(() => sendText(response, 200, "ok\n")))],
    ["/rollout/back", posted((_request, _url, response) => desk.back().then(() => sendText(response, 200, "ok\n")))],
  ];
}

async function tryOut(
  desk: RolloutDesk,
  request: IncomingMessage,
  url: URL,
  response: ServerResponse,
  log: Logger,
): Promise<void> {
  const forMs = Number(url.searchParams.get("forMs"));
  if (!(forMs >= shortestTrialMs && forMs <= longestTrialMs)) {
    return sendText(response, 400, "a trial takes from 5 s to 24 h\n");
  }
  const { answer, begin } = await desk.tryOut({ ...(await fileOf(request, url)), forMs });
  // The agent begins anew, and cuts every connection: the answer goes first.
  response.once("close", () => {
    begin().catch((error: unknown) => log.error("The trial could not begin", error));
  });
  sendJson(response, answer);
}

async function fileOf(request: IncomingMessage, url: URL): Promise<RolloutFile> {
  return { path: url.searchParams.get("path") ?? "", text: await readRequestText(request, longestFile) };
}

function posted(handler: Handler): Handler {
  return async (request, url, response) => {
    if (request.method !== "POST") return sendText(response, 405, "want POST\n", { Allow: "POST" });
    try {
      await handler(request, url, response);
    } catch (error) {
      if (!(error instanceof Error) || response.headersSent) throw error;
      request.resume();
      sendText(response, error.name === "RolloutRefusal" ? 409 : 500, `${messageOf(error)}\n`, { Connection: "close" });
    }
  };
}
