import type { FinishedStep, LedgerView } from "../../ground/base/index.ts";
import type { MetricRegistry } from "../../ground/metrics/index.ts";
import { containersOf, type IdentifiedPod, isStaticPod, type PodStatus } from "../../ground/model/index.ts";
import type { WorkerMetrics } from "../../pod/workers/index.ts";
import { podStarts, statusSyncs, steps, usual } from "./buckets.ts";
import { pullMs } from "./pull-time.ts";

/** What becomes of pods, as it happens. */
export class PodMetrics implements Omit<WorkerMetrics, "resizing" | "resized"> {
  readonly #containersPerPod;
  readonly #syncs;
  readonly #waits;
  readonly #starts;
  readonly #slis;
  readonly #totals;
  readonly #statusSyncs;
  readonly #cgroups;
  readonly #orphans;
  readonly #restarts;
  readonly #preemptions;
  readonly #rejections;
  readonly #evictions;
  readonly #evictionStatsAges;
  readonly #httpFallbacks;
  readonly #sleepsCut;
  readonly #steps;

  constructor(registry: MetricRegistry) {
    this.#containersPerPod = registry.histogram(
      "kubelet_containers_per_pod_count",
      "[ALPHA] Containers of new pods",
      [1, 2, 4, 8, 16],
    );
    this.#syncs = registry.histogram(
      "kubelet_pod_worker_duration_seconds",
      "[ALPHA] How long one sync of a pod took",
      usual,
      ["operation_type"],
    );
    this.#waits = registry.histogram(
      "kubelet_pod_worker_start_duration_seconds",
      "[ALPHA] Time from first seeing a pod until work on it begins",
      usual,
    );
    this.#starts = registry.histogram(
      "kubelet_pod_start_duration_seconds",
      "[ALPHA] Time from first seeing a pod until it runs",
      podStarts,
    );
    this.#slis = registry.histogram(
      "kubelet_pod_start_sli_duration_seconds",
      "[ALPHA] Time from the creation of a pod until it runs, without the time for images and init containers",
      podStarts,
    );
    this.#totals = registry.histogram(
      "kubelet_pod_start_total_duration_seconds",
      "[ALPHA] Time from the creation of a pod until it runs",
      podStarts,
    );
    this.#statusSyncs = registry.histogram(
      "kubelet_pod_status_sync_duration_seconds",
      "[ALPHA] Time from a change of a pod's status until the API server has it",
      statusSyncs,
    );
    this.#cgroups = registry.histogram(
      "kubelet_cgroup_manager_duration_seconds",
      "[ALPHA] How long work on the cgroups of pods took",
      usual,
      ["operation_type"],
    );
    this.#orphans = registry.counter(
      "kubelet_orphaned_runtime_pods_total",
      "[ALPHA] Orphaned pods that were stopped because only the runtime knew them",
    );
    this.#restarts = registry.counter(
      "kubelet_restarted_pods_total",
      "[ALPHA] Pods that came back with the same uid after they had been deleted",
      ["static"],
    );
    this.#preemptions = registry.counter("kubelet_preemptions", "[ALPHA] Pods that made room for critical ones", [
      "preemption_signal",
    ]);
    this.#rejections = registry.counter("kubelet_admission_rejections_total", "[ALPHA] Pods that were refused", [
      "reason",
    ]);
    this.#evictions = registry.counter("kubelet_evictions", "[ALPHA] Evicted pods, by eviction signal", [
      "eviction_signal",
    ]);
    this.#evictionStatsAges = registry.histogram(
      "kubelet_eviction_stats_age_seconds",
      "[ALPHA] How old the figures were by which pods were evicted",
      usual,
      ["eviction_signal"],
    );
    this.#httpFallbacks = registry.counter(
      "kubelet_lifecycle_handler_http_fallbacks_total",
      "[ALPHA] Hooks over HTTPS that worked only over HTTP",
    );
    this.#sleepsCut = registry.counter(
      "kubelet_sleep_action_terminated_early_total",
      "[ALPHA] Sleeps of hooks that the end of their container cut short",
    );
    this.#steps = registry.histogram(
      "nodelet_pod_step_duration_seconds",
      "How long the steps of pods' lives took, as `nodelet blame` shows them for one pod",
      steps,
      ["step", "outcome"],
    );
  }

  readonly onEvicted = (signal: string): void => {
    this.#evictions.inc({ eviction_signal: signal });
  };

  readonly onEvictionStatsAge = (signal: string, ageMs: number): void => {
    this.#evictionStatsAges.observe({ eviction_signal: signal }, ageMs / 1000);
  };

  readonly onHook = (what: "plain HTTP" | "sleep cut short"): void => {
    if (what === "plain HTTP") this.#httpFallbacks.inc({});
    else this.#sleepsCut.inc({});
  };

  began(pod: IdentifiedPod | undefined, waitedMs: number): void {
    this.#waits.observe({}, waitedMs / 1000);
    if (pod !== undefined) this.#containersPerPod.observe({}, containersOf(pod).length);
  }

  synced(operation: string, durationMs: number): void {
    this.#syncs.observe({ operation_type: operation }, durationMs / 1000);
  }

  orphaned(): void {
    this.#orphans.inc({});
  }

  restarted(pod: IdentifiedPod): void {
    this.#restarts.inc({ static: isStaticPod(pod) ? "true" : "" });
  }

  preempted(resource: string): void {
    this.#preemptions.inc({ preemption_signal: resource });
  }

  rejected(reason: string): void {
    this.#rejections.inc({ reason: knownReasons.has(reason) || insufficient.test(reason) ? reason : "Other" });
  }

  readonly onStep = ({ step, outcome, durationMs }: FinishedStep): void => {
    this.#steps.observe({ step, outcome }, Math.max(0, durationMs) / 1000);
  };

  readonly onStatusSynced = (durationMs: number): void => {
    this.#statusSyncs.observe({}, durationMs / 1000);
  };

  /** Measures work on cgroups. */
  async cgroup<Result>(
    operation: "create" | "destroy",
    monotonic: () => number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const startedAt = monotonic();
    const result = await work();
    this.#cgroups.observe({ operation_type: operation }, (monotonic() - startedAt) / 1000);
    return result;
  }

  /** The pod's status has changed; a pod that runs for the first time has started. */
  onStatus(
    pod: IdentifiedPod,
    status: PodStatus,
    before: PodStatus | undefined,
    ledger: LedgerView | undefined,
    now: number,
  ): void {
    if (status.phase !== "Running" || before?.phase === "Running") return;
    const { entries = [] } = ledger ?? {};
    const seen = entries.find(({ step }) => step === "seen");
    // A pod that ran already when the agent came has started long ago.
    if (seen === undefined || !entries.some(({ step }) => step === "sandbox")) return;
    this.#starts.observe({}, (now - seen.startedAt) / 1000);
    const created = Date.parse(String(pod.metadata.creationTimestamp ?? ""));
    if (isStaticPod(pod) || Number.isNaN(created)) return;
    const totalMs = Math.max(0, now - created);
    this.#totals.observe({}, totalMs / 1000);
    this.#slis.observe({}, Math.max(0, totalMs - pullMs(entries, now) - initMs(status)) / 1000);
  }
}

function initMs({ initContainerStatuses = [] }: PodStatus): number {
  return initContainerStatuses.reduce((sum, { state }) => {
    const { startedAt, finishedAt } = state?.terminated ?? {};
    const took = Date.parse(String(finishedAt ?? "")) - Date.parse(String(startedAt ?? ""));
    return sum + (Number.isNaN(took) ? 0 : Math.max(0, took));
  }, 0);
}

// What a handler outside of this list says may hold anything, and a label must not.
const insufficient = /^OutOf(?:cpu|memory|ephemeral-storage|pods)$/;
const knownReasons: ReadonlySet<string> = new Set([
  "AppArmor",
  "InvalidNodeInfo",
  "MaxPods",
  "NodeAffinity",
  "NodePorts",
  "NodeName",
  "NodeShutdown",
  "NodeUnschedulable",
  "PodOSNotSupported",
  "PodOSSelectorNodeLabelDoesNotMatch",
  "PodLevelResourcesNotSupported",
  "SupplementalGroupsPolicyNotSupported",
  "SysctlForbidden",
  "TaintToleration",
  "TopologyAffinityError",
  "UnexpectedAdmissionError",
  "UnexpectedPredicateFailureType",
]);
