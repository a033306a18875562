import type { MetricRegistry } from "../../ground/metrics/index.ts";
import { amountIn, type IdentifiedPod, type PodUid, resizableContainers } from "../../ground/model/index.ts";

const durations = [10, 50, 100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000];

/** Resizes of running pods: what was asked for, what waits and why, how long tries took. */
export class ResizeMetrics {
  readonly #requested;
  readonly #infeasible;
  readonly #accepted;
  readonly #durations;
  readonly #underWay = new Set<PodUid>();

  constructor(registry: MetricRegistry) {
    this.#requested = registry.counter(
      "kubelet_container_requested_resizes_total",
      "[ALPHA] Changes of resources that were asked for, by container",
      ["resource", "requirement", "operation"],
    );
    this.#infeasible = registry.counter(
      "kubelet_pod_infeasible_resizes_total",
      "[ALPHA] Resizes that this node can't carry out",
      ["reason_detail"],
    );
    this.#accepted = registry.counter(
      "kubelet_pod_deferred_accepted_resizes_total",
      "[ALPHA] Resizes that had to wait and were accepted",
      ["retry_trigger"],
    );
    this.#durations = registry.histogram(
      "kubelet_pod_resize_duration_milliseconds",
      "[ALPHA] Time that tries took to give pods what they were promised",
      durations,
      ["success"],
    );
    registry.read("kubelet_pod_in_progress_resizes", "gauge", "[ALPHA] Pods that are being resized", [], () => [
      [{}, this.#underWay.size],
    ]);
  }

  readonly onInfeasible = (detail: string): void => this.#infeasible.inc({ reason_detail: detail });

  readonly onAccepted = (trigger: string): void => this.#accepted.inc({ retry_trigger: trigger });

  /** A pod asks for other resources than it was promised. */
  readonly onRequested = (running: IdentifiedPod, wanted: IdentifiedPod): void => {
    const before = new Map(resizableContainers(running).map(({ name, resources }) => [name, resources]));
    for (const { name, resources } of resizableContainers(wanted)) {
      for (const resource of ["cpu", "memory"] as const) {
        for (const requirement of ["requests", "limits"] as const) {
          const [had, asks] = [before.get(name), resources].map((each) => amountIn(each, requirement, resource));
          const operation = operationOf(had, asks);
          if (operation !== undefined) this.#requested.inc({ resource, requirement, operation });
        }
      }
    }
  };

  /** The pod does not have what it was promised, or has it now. */
  readonly onProgress = (uid: PodUid, isUnderWay: boolean): void => {
    if (isUnderWay) this.#underWay.add(uid);
    else this.#underWay.delete(uid);
  };

  readonly onTried = (isDone: boolean, durationMs: number): void =>
    this.#durations.observe({ success: String(isDone) }, durationMs);

  forget(uid: PodUid): void {
    this.#underWay.delete(uid);
  }
}

function operationOf(had: bigint | undefined, asks: bigint | undefined): string | undefined {
  if (had === asks) return undefined;
  if (had === undefined) return "add";
  if (asks === undefined) return "remove";
  return asks > had ? "increase" : "decrease";
}
