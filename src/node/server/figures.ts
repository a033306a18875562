import type { OnHealthAsked } from "./api/health-mounts.ts";
import { HttpMetrics } from "./metrics/http-metrics.ts";
import { MetricRegistry } from "./metrics/registry.ts";

/** What the agent counts. */
export class Figures {
  /** Of /metrics. */
  readonly main = new MetricRegistry();
  /** Of /metrics/probes. */
  readonly probes = new MetricRegistry();
  /** Of /metrics/slis. */
  readonly slis = new MetricRegistry();
  readonly http = new HttpMetrics(this.main);
  readonly #healthy = this.slis.gauge("kubernetes_healthcheck", "[STABLE] Whether the check passed when last asked", [
    "name",
    "type",
  ]);
  readonly #asked = this.slis.counter("kubernetes_healthchecks_total", "[STABLE] How often the check was asked", [
    "name",
    "type",
    "status",
  ]);
  readonly onHealthAsked: OnHealthAsked = (outcomes) => {
    for (const { name, ok } of outcomes) {
      this.#healthy.set({ name, type: "healthz" }, ok ? 1 : 0);
      this.#asked.inc({ name, type: "healthz", status: ok ? "success" : "error" });
    }
  };
}
