import type { MetricRegistry } from "../../ground/metrics/index.ts";

/** When the machine was last turned off with its pods ended in good time. */
export class ShutdownMetrics {
  readonly #start;
  readonly #end;

  constructor(registry: MetricRegistry) {
    this.#start = registry.gauge(
      "kubelet_graceful_shutdown_start_time_seconds",
      "[ALPHA] When the last graceful shutdown began, in seconds since 1970",
    );
    this.#end = registry.gauge(
      "kubelet_graceful_shutdown_end_time_seconds",
      "[ALPHA] When the last graceful shutdown was done with, in seconds since 1970; 0 while it is not",
    );
    this.show({ startedAt: undefined, endedAt: undefined });
  }

  /** In milliseconds since 1970. */
  show({ startedAt, endedAt }: { readonly startedAt: number | undefined; readonly endedAt: number | undefined }): void {
    this.#start.set({}, (startedAt ?? 0) / 1000);
    this.#end.set({}, (endedAt ?? 0) / 1000);
  }
}
