import { MetricRegistry } from "../../ground/metrics/index.ts";
import type { OnHealthAsked } from "./api/health-mounts.ts";
import { HttpMetrics } from "./metrics/http-metrics.ts";

/** Figures of something else in this process. */
export type OtherFigures = Pick<MetricRegistry, "write">;

/** What the agent counts. */
export class MetricRegistries {
  /** Of /metrics. */
  readonly main = new MetricRegistry();
  /** Shown behind it. */
  readonly others: OtherFigures | undefined;
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

  constructor(others?: OtherFigures) {
    this.others = others;
  }

  readonly onHealthAsked: OnHealthAsked = (outcomes) => {
    for (const { name, ok } of outcomes) {
      this.#healthy.set({ name, type: "healthz" }, ok ? 1 : 0);
      this.#asked.inc({ name, type: "healthz", status: ok ? "success" : "error" });
    }
  };
}
