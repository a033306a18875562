import type { MetricRegistry } from "../../ground/metrics/index.ts";
import type { DoctorSummary } from "../server/index.ts";

/** What `nodelet doctor` came to when somebody last had it examine this node; nothing before that. */
export class DoctorMetrics {
  #last: DoctorSummary | undefined;

  constructor(registry: MetricRegistry) {
    const help = "What the checks of nodelet doctor came to when it last examined this node";
    registry.read("nodelet_doctor_findings", "gauge", help, ["state"], () =>
      Array.from(this.#last?.counts ?? [], ([state, count]) => [{ state }, count] as const),
    );
    const when = "When nodelet doctor last examined this node";
    registry.read("nodelet_doctor_last_examination_timestamp_seconds", "gauge", when, [], () =>
      this.#last === undefined ? [] : [[{}, this.#last.atMs / 1000]],
    );
  }

  examined(found: DoctorSummary): void {
    this.#last = found;
  }
}
