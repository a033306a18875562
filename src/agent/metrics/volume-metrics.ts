import type { MetricRegistry } from "../../server/index.ts";
import type { OrphanReport } from "../../volumes/index.ts";

const delayBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** What becomes of volumes. */
export class VolumeMetrics {
  readonly #cleaned;
  readonly #cleanErrors;
  readonly #content;

  constructor(registry: MetricRegistry) {
    this.#cleaned = registry.gauge(
      "kubelet_orphan_pod_cleaned_volumes",
      "[ALPHA] Pods that were gone and whose directories the last sweep removed",
    );
    this.#cleanErrors = registry.gauge(
      "kubelet_orphan_pod_cleaned_volumes_errors",
      "[ALPHA] Pods that are gone and whose directories the last sweep could not remove",
    );
    this.#content = registry.histogram(
      "nodelet_volume_content_delay_seconds",
      "From a change of a config map or secret being known here to its being in the files of a pod",
      delayBuckets,
      ["plugin"],
    );
  }

  readonly onSweep = ({ removed, problems }: OrphanReport): void => {
    this.#cleaned.set({}, removed.length);
    this.#cleanErrors.set({}, problems.length);
  };

  readonly onContent = ({ plugin, delayMs }: { readonly plugin: string; readonly delayMs: number }): void => {
    this.#content.observe({ plugin }, delayMs / 1000);
  };
}
