import type { MetricRegistry } from "../../ground/metrics/index.ts";
import { imagePulls, usual } from "./buckets.ts";

/** Images that come and go. */
export class ImageMetrics {
  readonly #pulls;
  readonly #collected;
  readonly #pluginDurations;
  readonly #pluginErrors;

  constructor(registry: MetricRegistry) {
    this.#pulls = registry.histogram(
      "kubelet_image_pull_duration_seconds",
      "[ALPHA] How long pulls of images took",
      imagePulls,
      ["image_size_in_bytes"],
    );
    this.#collected = registry.counter(
      "kubelet_image_garbage_collected_total",
      "[ALPHA] Images that were removed because nothing used them",
      ["reason"],
    );
    const plugin = ["plugin_name"] as const;
    this.#pluginErrors = registry.counter(
      "kubelet_credential_provider_plugin_errors_total",
      "[ALPHA] Runs of credential providers that failed",
      plugin,
    );
    this.#pluginDurations = registry.histogram(
      "kubelet_credential_provider_plugin_duration",
      "[ALPHA] How long runs of credential providers took, in seconds",
      usual,
      plugin,
    );
  }

  readonly onPull = (pull: {
    readonly outcome: string;
    readonly durationMs: number;
    readonly sizeBytes: bigint;
  }): void => {
    if (pull.outcome !== "pulled") return;
    this.#pulls.observe({ image_size_in_bytes: sizeLabel(pull.sizeBytes) }, pull.durationMs / 1000);
  };

  readonly onRemoved = ({ reason }: { readonly reason: "age" | "space" }): void => {
    this.#collected.inc({ reason });
  };

  readonly onPlugin = (call: {
    readonly plugin: string;
    readonly durationMs: number;
    readonly failed: boolean;
  }): void => {
    const labels = { plugin_name: call.plugin };
    this.#pluginDurations.observe(labels, call.durationMs / 1000);
    if (call.failed) this.#pluginErrors.inc(labels);
  };
}

const megabyte = 1024n * 1024n;
const gigabyte = 1024n * megabyte;
const sizes: readonly (readonly [bigint, string])[] = [
  [10n * megabyte, "0-10MB"],
  [100n * megabyte, "10MB-100MB"],
  [500n * megabyte, "100MB-500MB"],
  [gigabyte, "500MB-1GB"],
  [10n * gigabyte, "1GB-10GB"],
  [100n * gigabyte, "10GB-100GB"],
];

export function sizeLabel(bytes: bigint): string {
  return sizes.find(([limit]) => bytes <= limit)?.[1] ?? "GT100GB";
}
