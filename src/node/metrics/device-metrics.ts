import type { MetricRegistry } from "../../ground/metrics/index.ts";
import { usual } from "./buckets.ts";

/** Names that plugins make up are counted one by one up to here, and together from then on. */
const mostNames = 100;

/** Device plugins, and how long they take. */
export class DeviceMetrics {
  readonly #registrations;
  readonly #allocations;
  readonly #names = new Set<string>();

  constructor(registry: MetricRegistry) {
    const labels = ["resource_name"] as const;
    this.#registrations = registry.counter(
      "kubelet_device_plugin_registration_total",
      "[ALPHA] Registrations of device plugins",
      labels,
    );
    this.#allocations = registry.histogram(
      "kubelet_device_plugin_alloc_duration_seconds",
      "[ALPHA] How long device plugins took to say how devices are used",
      usual,
      labels,
    );
  }

  readonly onRegister = (resource: string): void => {
    if (this.#names.size < mostNames && resource.length < 400) this.#names.add(resource);
    this.#registrations.inc({ resource_name: this.#names.has(resource) ? resource : "other" });
  };

  readonly onAllocated = (resource: string, durationMs: number): void => {
    this.#allocations.observe({ resource_name: resource }, durationMs / 1000);
  };
}
