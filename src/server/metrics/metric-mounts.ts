import type { Logger } from "../../base/index.ts";
import { messageOf } from "../../base/index.ts";
import type { Mount } from "../api/router.ts";
import type { Figures } from "../figures.ts";
import { sendText, untilClientLeaves } from "../http.ts";
import { writeResourceMetrics } from "./resource-metrics.ts";
import { sendMetrics } from "./send-metrics.ts";

/** /metrics and what is below it; any method. */
export function metricMounts(figures: Figures, log: Logger): readonly Mount[] {
  return [
    { type: "path", path: "/metrics", handle: (call) => sendMetrics(call, (text) => figures.main.write(text)) },
    {
      type: "path",
      path: "/metrics/probes",
      handle: (call) => sendMetrics(call, (text) => figures.probes.write(text)),
    },
    {
      type: "path",
      path: "/metrics/slis",
      handle: (call) => {
        if (call.request.method !== "DELETE") return sendMetrics(call, (text) => figures.slis.write(text));
        figures.slis.reset();
        return sendText(call.response, 200, "metrics reset\n");
      },
    },
    {
      type: "path",
      path: "/metrics/resource",
      handle: async (call) => {
        const signal = untilClientLeaves(call.response);
        const taken = await figures
          .statistics()
          .then((statistics) => statistics.figures(signal))
          .catch((error: unknown) => {
            if (!signal.aborted) log.warn("Could not take the figures of the node", { reason: messageOf(error) });
            return undefined;
          });
        if (!signal.aborted) await sendMetrics(call, (text) => writeResourceMetrics(text, taken));
      },
    },
  ];
}
