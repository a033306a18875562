import type { MetricRegistry } from "../../ground/metrics/index.ts";
import { driverCalls } from "./buckets.ts";

/** Names of drivers are counted one by one up to here, and together from then on. */
const mostNames = 100;

/** Resource claims, and how long their drivers take. */
export class ClaimMetrics {
  readonly #registry: MetricRegistry;
  readonly #operations;
  readonly #calls;
  readonly #names = new Set<string>();

  constructor(registry: MetricRegistry) {
    this.#registry = registry;
    this.#operations = registry.histogram(
      "dra_operations_duration_seconds",
      "[ALPHA] How long it took to have all claims of a pod prepared, or given back",
      driverCalls,
      ["operation_name", "is_error"],
    );
    this.#calls = registry.histogram(
      "dra_grpc_operations_duration_seconds",
      "[ALPHA] How long DRA drivers took to answer",
      driverCalls,
      ["driver_name", "method_name", "grpc_status_code"],
    );
  }

  readonly onOperation = (operation: string, ok: boolean, durationMs: number): void => {
    this.#operations.observe({ operation_name: operation, is_error: String(!ok) }, durationMs / 1000);
  };

  readonly onCall = (driver: string, method: string, code: string, durationMs: number): void => {
    if (this.#names.size < mostNames) this.#names.add(driver);
    const name = this.#names.has(driver) ? driver : "other";
    this.#calls.observe({ driver_name: name, method_name: method, grpc_status_code: code }, durationMs / 1000);
  };

  show(claims: () => Iterable<{ readonly drivers: ReadonlyMap<string, unknown> }>): void {
    this.#registry.read(
      "dra_resource_claims_in_use",
      "gauge",
      "[ALPHA] Resource claims that pods of this node use; <any>: of all drivers",
      ["driver_name"],
      () => {
        const all = [...claims()];
        const counts = new Map([["<any>", all.length]]);
        for (const { drivers } of all) {
          for (const driver of drivers.keys()) counts.set(driver, (counts.get(driver) ?? 0) + 1);
        }
        return [...counts].map(([driver, count]) => [{ driver_name: driver }, count] as const);
      },
    );
  }
}
