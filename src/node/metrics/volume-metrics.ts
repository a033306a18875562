import type { MetricRegistry } from "../../ground/metrics/index.ts";
import type { MountReport, OrphanedDirectoriesReport, PodVolumes } from "../../pod/volumes/index.ts";

const operationBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];
const delayBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** What becomes of volumes. */
export class VolumeMetrics {
  readonly #cleaned;
  readonly #cleanErrors;
  readonly #content;
  readonly #operations;
  readonly #registry: MetricRegistry;

  constructor(registry: MetricRegistry) {
    this.#registry = registry;
    this.#operations = registry.histogram(
      "storage_operation_duration_seconds",
      "[ALPHA] How long it took to make volumes",
      operationBuckets,
      ["volume_plugin", "operation_name", "status", "migrated"],
    );
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
      "Time from seeing a change of a config map or secret until it is in the files of a pod",
      delayBuckets,
      ["plugin"],
    );
  }

  readonly onMount = ({ plugin, form, durationMs, failed }: MountReport): void => {
    const labels = {
      volume_plugin: plugin,
      operation_name: form === "block" ? "map_volume" : "volume_mount",
      status: failed ? "fail-unknown" : "success",
      migrated: "false",
    };
    this.#operations.observe(labels, durationMs / 1000);
  };

  /** How many volumes are wanted, and how many are there. */
  show(volumes: Pick<PodVolumes, "kinds">): void {
    const help = "[ALPHA] Volumes that are wanted, and those that are there";
    this.#registry.read("volume_manager_total_volumes", "gauge", help, ["plugin_name", "state"], () => {
      const all = volumes.kinds();
      return [...new Set(all.map(({ plugin }) => plugin))].flatMap((plugin_name) => {
        const own = all.filter(({ plugin }) => plugin === plugin_name);
        return [
          [{ plugin_name, state: "desired_state_of_world" }, own.length],
          [{ plugin_name, state: "actual_state_of_world" }, own.filter(({ isMounted }) => isMounted).length],
        ] as const;
      });
    });
  }

  readonly onSweep = ({ removed, problems }: OrphanedDirectoriesReport): void => {
    this.#cleaned.set({}, removed.length);
    this.#cleanErrors.set({}, problems.length);
  };

  readonly onContent = ({ plugin, delayMs }: { readonly plugin: string; readonly delayMs: number }): void => {
    this.#content.observe({ plugin }, delayMs / 1000);
  };
}
