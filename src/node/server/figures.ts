import type { TaskScope } from "../../ground/base/index.ts";
import type { OnHealthAsked } from "./api/health-mounts.ts";
import { HttpMetrics } from "./metrics/http-metrics.ts";
import { MetricRegistry } from "./metrics/registry.ts";
import type { NodeStatistics } from "./stats/node-stats.ts";
import type { StatsPorts } from "./stats/ports.ts";

/** What the agent counts, and where its statistics come from once there is a runtime. */
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
  #source: { readonly scope: TaskScope; readonly ports: StatsPorts } | undefined;
  #statistics: Promise<NodeStatistics> | undefined;

  /** From here on there is something to take statistics of; what is measured beside requests lives in the scope. */
  attach(ports: StatsPorts, scope: TaskScope): void {
    this.#source = { ports, scope };
  }

  get hasStatistics(): boolean {
    return this.#source !== undefined;
  }

  /** Throws until the agent has reached its runtime. */
  async statistics(): Promise<NodeStatistics> {
    const source = this.#source;
    if (source === undefined) throw new Error("the agent has not reached the container runtime yet");
    this.#statistics ??= import("./stats/node-stats.ts").then(
      ({ NodeStatistics }) => new NodeStatistics(source.scope, source.ports),
    );
    return await this.#statistics;
  }

  readonly onHealthAsked: OnHealthAsked = (outcomes) => {
    for (const { name, ok } of outcomes) {
      this.#healthy.set({ name, type: "healthz" }, ok ? 1 : 0);
      this.#asked.inc({ name, type: "healthz", status: ok ? "success" : "error" });
    }
  };
}
