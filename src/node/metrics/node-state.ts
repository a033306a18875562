import type { MetricRegistry } from "../../ground/metrics/index.ts";
import {
  type IdentifiedPod,
  isMirrorPod,
  isStaticPod,
  type ObservedPod,
  type PodUid,
  uidOf,
} from "../../ground/model/index.ts";
import type { PodState } from "../../pod/workers/index.ts";

/** What is known of pods at any time. */
export interface NodeState {
  /** Of all sources, mirrors too. */
  readonly wanted: () => readonly IdentifiedPod[];
  readonly worked: () => readonly IdentifiedPod[];
  readonly workedUids: () => Iterable<PodUid>;
  readonly stateOf: (uid: PodUid) => PodState | undefined;
  readonly observed: () => Iterable<ObservedPod>;
  /** Resizes that wait. */
  readonly resizes: () => Iterable<{ readonly reason: string }>;
}

const lifecycles = ["sync", "terminating", "terminated"] as const;
const containerStates = ["running", "exited", "created", "unknown"] as const;

/** How many pods and containers there are, counted when somebody asks. */
export function showNodeState(registry: MetricRegistry, state: NodeState): void {
  const own = (): readonly IdentifiedPod[] => state.wanted().filter((pod) => !isMirrorPod(pod));
  registry.read("kubelet_desired_pods", "gauge", "[ALPHA] Pods that sources want", ["static"], () => byStatic(own()));
  registry.read("kubelet_active_pods", "gauge", "[ALPHA] Pods that are to run", ["static"], () =>
    byStatic(state.worked().filter((pod) => state.stateOf(uidOf(pod))?.step === "running")),
  );
  registry.read("kubelet_mirror_pods", "gauge", "[ALPHA] Mirrors of static pods in the API", [], () => [
    [{}, state.wanted().filter(isMirrorPod).length],
  ]);
  registry.read(
    "kubelet_working_pods",
    "gauge",
    "[ALPHA] Pods with a worker, by state and source",
    ["lifecycle", "config", "static"],
    () => workingPods(state),
  );
  registry.read(
    "kubelet_managed_ephemeral_containers",
    "gauge",
    "[ALPHA] Ephemeral containers of wanted pods",
    [],
    () => [[{}, own().reduce((sum, { spec }) => sum + (spec.ephemeralContainers?.length ?? 0), 0)]],
  );
  registry.read("kubelet_pod_pending_resizes", "gauge", "[ALPHA] Resizes that wait, by reason", ["reason"], () =>
    byReason(state.resizes()),
  );
  registry.read("kubelet_running_pods", "gauge", "[ALPHA] Pods whose sandbox is ready", [], () => [
    [{}, [...state.observed()].filter(({ sandboxes }) => sandboxes.some((each) => each.state === "ready")).length],
  ]);
  registry.read("kubelet_running_containers", "gauge", "[ALPHA] Containers by state", ["container_state"], () => {
    const states = [...state.observed()].flatMap(({ containers }) => containers.map((each) => each.state));
    return containerStates.map((each) => [{ container_state: each }, states.filter((one) => one === each).length]);
  });
}

/** How many resizes wait, and why. */
function byReason(resizes: Iterable<{ readonly reason: string }>) {
  const reasons = [...resizes].map(({ reason }) => reason.toLowerCase());
  return ["deferred", "infeasible"].map(
    (reason) => [{ reason }, reasons.filter((each) => each === reason).length] as const,
  );
}

function byStatic(pods: readonly IdentifiedPod[]): readonly (readonly [{ readonly static: string }, number])[] {
  const statics = pods.filter(isStaticPod).length;
  return [
    [{ static: "" }, pods.length - statics],
    [{ static: "true" }, statics],
  ];
}

type WorkingLabels = { readonly lifecycle: string; readonly config: string; readonly static: string };

function workingPods(state: NodeState): readonly (readonly [WorkingLabels, number])[] {
  const wanted = new Set(state.wanted().map(uidOf));
  const worked = new Map(state.worked().map((pod) => [uidOf(pod), pod]));
  const counts = new Map<string, [WorkingLabels, number]>();
  const count = (labels: WorkingLabels, by: number): void => {
    const key = Object.values(labels).join("/");
    const counted = counts.get(key) ?? [labels, 0];
    counted[1] += by;
    counts.set(key, counted);
  };
  for (const lifecycle of lifecycles) {
    for (const config of ["desired", "orphan"])
      for (const each of ["", "true"]) count({ lifecycle, config, static: each }, 0);
    count({ lifecycle, config: "runtime_only", static: "unknown" }, 0);
  }
  for (const uid of state.workedUids()) {
    const pod = worked.get(uid);
    const lifecycle = lifecycleOf(state.stateOf(uid));
    if (pod === undefined) count({ lifecycle, config: "runtime_only", static: "unknown" }, 1);
    else
      count({ lifecycle, config: wanted.has(uid) ? "desired" : "orphan", static: isStaticPod(pod) ? "true" : "" }, 1);
  }
  return [...counts.values()];
}

function lifecycleOf(state: PodState | undefined): (typeof lifecycles)[number] {
  switch (state?.step) {
    case "running":
      return "sync";
    case "terminating":
      return "terminating";
    case "terminated":
    case "finished":
    case undefined:
      return "terminated";
  }
}
