import type { CallReport } from "../../connections/cri/index.ts";
import type { MetricRegistry } from "../../ground/metrics/index.ts";
import type { StartReport } from "../../pod/runtime/index.ts";
import { runtimeOperations, usual } from "./buckets.ts";

/** What is asked of the container runtime, and how it does. */
export class RuntimeMetrics {
  readonly #calls;
  readonly #callErrors;
  readonly #callDurations;
  readonly #relistDurations;
  readonly #relistIntervals;
  readonly #relistSeen;
  readonly #sandboxDurations;
  readonly #sandboxErrors;
  readonly #pods;
  readonly #podErrors;
  readonly #userNamespaced;
  readonly #userNamespacedErrors;
  readonly #containers;
  readonly #containerErrors;
  readonly #outdated;
  #lastRelistAt: number | undefined;

  constructor(registry: MetricRegistry) {
    const operation = ["operation_type"] as const;
    this.#calls = registry.counter("kubelet_runtime_operations_total", "[ALPHA] Calls of the runtime", operation);
    this.#callDurations = registry.histogram(
      "kubelet_runtime_operations_duration_seconds",
      "[ALPHA] How long calls of the runtime took",
      runtimeOperations,
      operation,
    );
    this.#callErrors = registry.counter(
      "kubelet_runtime_operations_errors_total",
      "[ALPHA] Calls of the runtime that failed",
      operation,
    );
    this.#relistDurations = registry.histogram(
      "kubelet_pleg_relist_duration_seconds",
      "[ALPHA] How long it took to compare all that the runtime has with what is known",
      usual,
    );
    this.#relistIntervals = registry.histogram(
      "kubelet_pleg_relist_interval_seconds",
      "[ALPHA] Time between two such comparisons; events of the runtime report changes in between",
      usual,
    );
    this.#relistSeen = registry.gauge(
      "kubelet_pleg_last_seen_seconds",
      "[ALPHA] When the last such comparison began, in seconds since 1970",
    );
    const handler = ["runtime_handler"] as const;
    this.#sandboxDurations = registry.histogram(
      "kubelet_run_podsandbox_duration_seconds",
      "[ALPHA] How long the runtime took to make sandboxes",
      usual,
      handler,
    );
    this.#sandboxErrors = registry.counter(
      "kubelet_run_podsandbox_errors_total",
      "[ALPHA] Sandboxes that the runtime could not make",
      handler,
    );
    this.#pods = registry.counter("kubelet_started_pods_total", "[ALPHA] Sandboxes that were asked for");
    this.#podErrors = registry.counter("kubelet_started_pods_errors_total", "[ALPHA] Sandboxes that could not be made");
    this.#userNamespaced = registry.counter(
      "kubelet_started_user_namespaced_pods_total",
      "[ALPHA] Sandboxes with a user namespace that were asked for",
    );
    this.#userNamespacedErrors = registry.counter(
      "kubelet_started_user_namespaced_pods_errors_total",
      "[ALPHA] Sandboxes with a user namespace that could not be made",
    );
    this.#containers = registry.counter(
      "kubelet_started_containers_total",
      "[ALPHA] Containers that were to be started",
      ["container_type"],
    );
    this.#containerErrors = registry.counter(
      "kubelet_started_containers_errors_total",
      "[ALPHA] Containers that could not be started, by the reason that their pod shows",
      ["container_type", "code"],
    );
    this.#outdated = registry.gauge(
      "kubelet_cri_losing_support",
      "[ALPHA] 1 when the runtime lacks what the kubelet of this version will need",
      ["version"],
    );
  }

  readonly onCall = ({ operationType, durationMs, error, cancelled }: CallReport): void => {
    const labels = { operation_type: operationType };
    this.#calls.inc(labels);
    this.#callDurations.observe(labels, durationMs / 1000);
    if (error !== undefined && !cancelled) this.#callErrors.inc(labels);
  };

  readonly onRelist = ({ at, durationMs }: { readonly at: number; readonly durationMs: number }): void => {
    this.#relistDurations.observe({}, durationMs / 1000);
    if (this.#lastRelistAt !== undefined)
      this.#relistIntervals.observe({}, Math.max(0, at - this.#lastRelistAt) / 1000);
    this.#lastRelistAt = at;
    this.#relistSeen.set({}, at / 1000);
  };

  readonly onStart = (report: StartReport): void => {
    if (report.what === "container") {
      const type = containerTypes[report.kind];
      this.#containers.inc({ container_type: type });
      if (report.failure !== undefined) this.#containerErrors.inc({ container_type: type, code: report.failure });
      return;
    }
    const { pod, runtimeHandler, durationMs, failed } = report;
    const hasOwnUsers = pod.spec.hostUsers === false;
    const labels = { runtime_handler: runtimeHandler };
    this.#pods.inc({});
    if (hasOwnUsers) this.#userNamespaced.inc({});
    this.#sandboxDurations.observe(labels, durationMs / 1000);
    if (!failed) return;
    this.#sandboxErrors.inc(labels);
    this.#podErrors.inc({});
    if (hasOwnUsers) this.#userNamespacedErrors.inc({});
  };

  /** The runtime can't say which cgroup driver it uses. */
  isOutdated(): void {
    this.#outdated.set({ version: "1.38.0" }, 1);
  }
}

const containerTypes = {
  regular: "container",
  init: "init_container",
  sidecar: "init_container",
  ephemeral: "ephemeral_container",
} as const;
