import type { MetricRegistry } from "../../ground/metrics/index.ts";

/** What the kernel kills for want of memory. */
export class OomMetrics {
  readonly #kills;

  constructor(registry: MetricRegistry) {
    const help = "Processes that the kernel killed because the machine, or a cgroup, had no memory left";
    this.#kills = registry.counter("nodelet_oom_kills_total", help, ["of"]);
  }

  readonly onKill = (of: "machine" | "cgroup"): void => {
    this.#kills.inc({ of });
  };
}
