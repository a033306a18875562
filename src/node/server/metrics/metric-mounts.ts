import { type Logger, loadedPart, messageOf, SharedWork } from "../../../ground/base/index.ts";
import type { ApiMount } from "../api/router.ts";
import { sendText, untilClientLeaves } from "../http.ts";
import type { MetricRegistries } from "../metric-registries.ts";
import type { LazyStatistics } from "../stats/lazy-statistics.ts";
import type { NodeStatistics } from "../stats/node-stats.ts";
import type { CgroupRow } from "./cadvisor-rows.ts";
import { writeResourceMetrics } from "./resource-metrics.ts";
import { sendMetrics } from "./send-metrics.ts";

/** /metrics and what is below it; any method. */
export function metricMounts(figures: MetricRegistries, statistics: LazyStatistics, log: Logger): readonly ApiMount[] {
  /** Statistics, or undefined when they can't be had, which the log tells. */
  const take = async <Taken>(
    look: (taken: NodeStatistics) => Promise<Taken>,
    signal: AbortSignal,
  ): Promise<Taken | undefined> => {
    try {
      return await look(await statistics.get());
    } catch (error) {
      if (!signal.aborted) log.warn("Could not read the statistics of the node", { reason: messageOf(error) });
      return undefined;
    }
  };
  // Looking into every cgroup is dear; who asks at the same time shares it.
  const looking = new SharedWork<"cgroups", readonly CgroupRow[]>();
  return [
    {
      type: "path",
      path: "/metrics",
      handle: async (call) => {
        const signal = untilClientLeaves(call.response);
        await sendMetrics(call, async (text) => {
          await figures.main.write(text);
          await figures.others?.write(text);
          if (!statistics.isReady) return;
          const { writeDiskMetrics } = await loadedPart(import("./disk-metrics.ts"));
          await take((taken) => writeDiskMetrics(text, taken, signal), signal);
        });
      },
    },
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
      path: "/metrics/cadvisor",
      handle: async (call) => {
        const signal = untilClientLeaves(call.response);
        const [{ writeCadvisorMetrics, writeScrapeErrors }, { cadvisorRows }] = await Promise.all([
          loadedPart(import("./cadvisor-metrics.ts")),
          loadedPart(import("./cadvisor-rows.ts")),
        ]);
        const taken = await take(async (statistics) => {
          const look = async (shared: AbortSignal) =>
            cadvisorRows(statistics, await statistics.sandboxImage(shared), shared);
          return { statistics, rows: await looking.join("cgroups", look, signal) };
        }, signal);
        if (signal.aborted) return;
        await sendMetrics(call, async (text) => {
          if (taken === undefined) writeScrapeErrors(text, 1);
          else await writeCadvisorMetrics(text, taken.statistics, taken.rows);
        });
      },
    },
    {
      type: "path",
      path: "/metrics/resource",
      handle: async (call) => {
        const signal = untilClientLeaves(call.response);
        const taken = await take((statistics) => statistics.figures(signal), signal);
        if (!signal.aborted) await sendMetrics(call, (text) => writeResourceMetrics(text, taken));
      },
    },
  ];
}
