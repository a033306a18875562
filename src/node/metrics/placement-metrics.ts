import type { MetricRegistry } from "../../ground/metrics/index.ts";
import type { PlacementHooks, PlacementView } from "../../pod/resources/index.ts";

/** 0.05 ms and doubles of it. */
const durations = Array.from({ length: 15 }, (_, exponent) => 0.05 * 2 ** exponent);

/** CPUs and memory that containers have alone: who asked, who got them, what is left. */
export class PlacementMetrics {
  readonly hooks: PlacementHooks;

  constructor(registry: MetricRegistry, monotonic: () => number) {
    const counter = (name: string, help: string) => registry.counter(`kubelet_${name}`, `[ALPHA] ${help}`);
    const cpuRequests = counter("cpu_manager_pinning_requests_total", "Containers that asked for CPUs of their own");
    const cpuFailures = counter("cpu_manager_pinning_errors_total", "Containers that could not have CPUs of their own");
    const memoryRequests = counter(
      "memory_manager_pinning_requests_total",
      "Containers that asked for memory of a node",
    );
    const memoryFailures = counter("memory_manager_pinning_errors_total", "Containers that could not have such memory");
    const admissions = counter("topology_manager_admission_requests_total", "Pods that were to be placed");
    const refusals = counter("topology_manager_admission_errors_total", "Pods that could not be placed");
    const times = registry.histogram(
      "kubelet_topology_manager_admission_duration_ms",
      "[ALPHA] Time to place a pod",
      durations,
    );
    const aligned = registry.counter(
      "kubelet_container_aligned_compute_resources_count",
      "[ALPHA] Containers, or pods, that got all of a resource within a boundary",
      ["scope", "boundary"],
    );
    const unaligned = registry.counter(
      "kubelet_container_aligned_compute_resources_failure_count",
      "[ALPHA] Containers, or pods, that could not get all of a resource within a boundary",
      ["scope", "boundary"],
    );
    const note = (scope: string, boundary: string, isAligned: boolean): void =>
      (isAligned ? aligned : unaligned).inc({ scope, boundary });
    this.hooks = {
      monotonic,
      cpu: {
        onRequest: () => cpuRequests.inc({}),
        onFailure: () => cpuFailures.inc({}),
        onAligned: (boundary, isAligned) => note("container", boundary, isAligned),
      },
      memory: { onRequest: () => memoryRequests.inc({}), onFailure: () => memoryFailures.inc({}) },
      onSingleNode: (scope, isAligned) => note(scope, "numa_node", isAligned),
      onAligned: (outcome, began) => {
        if (outcome !== "refused later") admissions.inc({});
        if (outcome !== "given") refusals.inc({});
        if (outcome !== "refused later") times.observe({}, monotonic() - began);
      },
    };
  }
}

/** How many CPUs are somebody's own, and how many are left. Read when somebody asks, so that it can't drift. */
export function showPlacement(registry: MetricRegistry, view: () => PlacementView): void {
  const figure = (name: string, help: string, read: (cpus: NonNullable<PlacementView["cpu"]>) => number): void =>
    registry.read(`kubelet_${name}`, "gauge", `[ALPHA] ${help}`, [], () => {
      const { cpu } = view();
      return cpu === undefined ? [] : [[{}, read(cpu)]];
    });
  const pool = "cpu_manager_shared_pool_size_millicores";
  figure(pool, "What is left for those without CPUs of their own", ({ free }) => free.size * 1000);
  const count = "cpu_manager_exclusive_cpu_allocation_count";
  figure(count, "CPUs that containers have of their own", ({ exclusive }) => exclusive.size);
  registry.read(
    "kubelet_cpu_manager_allocation_per_numa",
    "gauge",
    "[ALPHA] CPUs that containers have of their own, by NUMA node",
    ["numa_node"],
    () =>
      view().nodes.flatMap(({ id, cpus }) => {
        const { cpu } = view();
        return cpu === undefined ? [] : [[{ numa_node: String(id) }, cpus.sizeOfCommon(cpu.exclusive)] as const];
      }),
  );
}
