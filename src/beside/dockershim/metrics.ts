import type { Clock } from "../../ground/base/index.ts";
import { MetricRegistry } from "../../ground/metrics/index.ts";
import type { EngineCall } from "./engine/index.ts";

type NetworkOperation = "set_up_pod" | "tear_down_pod" | "get_pod_network_status";

/** Bounds in seconds, those of dockershim. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const operation = ["operation_type"] as const;

/** What is asked of Docker and of network plugins, by the names that dockershim had for it. */
export class ShimMetrics {
  readonly registry = new MetricRegistry();
  readonly #clock: Clock;
  readonly #docker = this.#family("kubelet_docker_operations", "of Docker");
  readonly #network = this.#family("kubelet_network_plugin_operations", "of the network plugin");
  readonly #timeouts = this.registry.counter(
    "kubelet_docker_operations_timeout_total",
    "[ALPHA] Calls of Docker that took too long",
    operation,
  );

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly onCall = ({ operation, outcome, durationMs }: EngineCall): void => {
    this.#docker.count(operation, durationMs, outcome !== "done");
    if (outcome === "timed out") this.#timeouts.inc({ operation_type: operation });
  };

  /** A pull is a stream of news: only who reads it to its end knows how it went. */
  async pull<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    return await this.#measured(this.#docker, "pull_image", signal, work);
  }

  async network<Result>(what: NetworkOperation, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    return await this.#measured(this.#network, what, signal, work);
  }

  /** What was given up by who asked is no error, and says nothing of how long it takes. */
  async #measured<Result>(
    family: OperationFamily,
    what: string,
    signal: AbortSignal,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const begunAt = this.#clock.monotonic();
    const count = (failed: boolean): void => family.count(what, this.#clock.monotonic() - begunAt, failed);
    try {
      const result = await work();
      count(false);
      return result;
    } catch (error) {
      if (!signal.aborted) count(true);
      throw error;
    }
  }

  #family(name: string, of: string): OperationFamily {
    const calls = this.registry.counter(`${name}_total`, `[ALPHA] Calls ${of}`, operation);
    const durations = this.registry.histogram(
      `${name}_duration_seconds`,
      `[ALPHA] How long calls ${of} took`,
      buckets,
      operation,
    );
    const errors = this.registry.counter(`${name}_errors_total`, `[ALPHA] Calls ${of} that failed`, operation);
    return {
      count(what, durationMs, failed) {
        const labels = { operation_type: what };
        calls.inc(labels);
        durations.observe(labels, durationMs / 1000);
        if (failed) errors.inc(labels);
      },
    };
  }
}

interface OperationFamily {
  count(what: string, durationMs: number, failed: boolean): void;
}
