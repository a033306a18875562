import type { MetricRegistry } from "../../ground/metrics/index.ts";

type Method = "list" | "get" | "get_allocatable";

/** Who asks which containers have which devices, CPUs and memory. */
export class PodResourcesMetrics {
  readonly #requests;
  readonly #byMethod;
  readonly #failures;

  constructor(registry: MetricRegistry) {
    const labels = ["server_api_version"] as const;
    const counter = (name: string, help: string) =>
      registry.counter(`kubelet_pod_resources_endpoint_${name}`, `[ALPHA] ${help}`, labels);
    this.#requests = counter("requests_total", "Requests for the resources of pods");
    this.#byMethod = {
      list: counter("requests_list", "Requests for the resources of all pods"),
      get: counter("requests_get", "Requests for the resources of one pod"),
      get_allocatable: counter("requests_get_allocatable", "Requests for what pods may use"),
    };
    this.#failures = {
      list: counter("errors_list", "Requests for the resources of all pods that failed"),
      get: counter("errors_get", "Requests for the resources of one pod that failed"),
      get_allocatable: counter("errors_get_allocatable", "Requests for what pods may use that failed"),
    };
  }

  readonly onRequest = (version: "v1" | "v1alpha1", method: Method): void => {
    this.#requests.inc({ server_api_version: version });
    if (version === "v1") this.#byMethod[method].inc({ server_api_version: version });
  };

  readonly onGetFailed = (): void => this.#failures.get.inc({ server_api_version: "v1" });
}
