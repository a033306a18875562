import type { MetricRegistry } from "../../ground/metrics/index.ts";
import type { ProbeMeasurement } from "../../pod/probes/index.ts";
import { delays, usual } from "./buckets.ts";

const types = { liveness: "Liveness", readiness: "Readiness", startup: "Startup" } as const;

/** Attempts of probes; what is known of a pod goes with it. */
export class ProbeMetrics {
  readonly #total;
  readonly #durations;
  readonly #late;
  readonly #names = new Map<string, { readonly namespace: string; readonly pod: string }>();

  constructor(registry: MetricRegistry, own: MetricRegistry) {
    this.#total = registry.counter("prober_probe_total", "[BETA] Attempts of probes, by result", [
      "probe_type",
      "result",
      "container",
      "pod",
      "namespace",
      "pod_uid",
    ]);
    this.#durations = registry.histogram(
      "prober_probe_duration_seconds",
      "[ALPHA] How long attempts of probes took",
      usual,
      ["probe_type", "container", "pod", "namespace"],
    );
    this.#late = own.histogram(
      "nodelet_probe_delay_seconds",
      "How much later than planned attempts of probes began",
      delays,
    );
  }

  readonly onProbe = (measurement: ProbeMeasurement): void => {
    const { uid, namespace, pod, container, kind, result, durationMs, lateMs } = measurement;
    if (!this.#names.has(uid)) this.#names.set(uid, { namespace, pod });
    const labels = { probe_type: types[kind], container, pod, namespace };
    this.#total.inc({ ...labels, result, pod_uid: uid });
    this.#durations.observe(labels, durationMs / 1000);
    this.#late.observe({}, Math.max(0, lateMs) / 1000);
  };

  /** How long attempts of this probe take on average; undefined: there was none. */
  meanMs(
    kind: keyof typeof types,
    of: { readonly namespace: string; readonly pod: string; readonly container: string },
  ) {
    const mean = this.#durations.mean({ probe_type: types[kind], ...of });
    return mean === undefined ? undefined : mean * 1000;
  }

  forget(uid: string): void {
    const names = this.#names.get(uid);
    if (names === undefined) return;
    this.#names.delete(uid);
    this.#total.forget({ pod_uid: uid });
    this.#durations.forget(names);
  }
}
