import { loadedPart, messageOf } from "../../../ground/base/index.ts";
import { AnswerError } from "../api/answer-error.ts";
import type { ApiCall, ApiMount } from "../api/router.ts";
import { sendJson, untilClientLeaves } from "../http.ts";
import type { NodeStatistics } from "./node-stats.ts";

/** /stats/summary; `statistics` throws until the agent knows its runtime. */
export function statsService(statistics: () => Promise<NodeStatistics>): ApiMount {
  const handle = async ({ query, response }: ApiCall): Promise<void> => {
    const signal = untilClientLeaves(response);
    const asked = query.getAll("only_cpu_and_memory");
    try {
      const { presentSummaryOf, shortSummaryOf, summaryOf } = await loadedPart(import("./summary.ts"));
      const short = query.get("now") === "true" ? presentSummaryOf : shortSummaryOf;
      const read = asked.length === 1 && asked[0] === "true" ? short : summaryOf;
      sendJson(response, await read(await statistics(), signal));
    } catch (error) {
      if (signal.aborted) return;
      throw new AnswerError(500, `Internal Error: ${messageOf(error)}`);
    }
  };
  return {
    type: "service",
    path: "/stats/",
    routes: [{ methods: ["GET", "POST"], pattern: "summary", produces: "application/json", handle }],
  };
}
