import {
  amountIn,
  type Container,
  changedResources,
  containersOf,
  type IdentifiedPod,
  isStaticPod,
  milliUnits,
  podResources,
  qosClassOf,
  type ResizableResource,
  type ResourceAmounts,
  resizableContainers,
  wholeUnits,
} from "../../ground/model/index.ts";
import type { AdmissionVerdict } from "./admission.ts";

export interface ResizeSettings {
  /** The gate InPlacePodVerticalScaling. */
  readonly isEnabled: boolean;
  /** The gates InPlacePodLevelResourcesVerticalScaling and InPlacePodVerticalScalingInitContainers, both of v1.35 or later. */
  readonly ofPods: boolean;
  readonly ofInitContainers: boolean;
  /** Guaranteed pods own CPUs, or memory of a NUMA node: cpuManagerPolicy static, memoryManagerPolicy Static. */
  readonly pinsCpus: boolean;
  readonly pinsMemory: boolean;
  /** Whether containers of the pod may swap, by how much memory they ask for. */
  readonly mayUseSwap: (pod: IdentifiedPod, container: Container) => boolean;
  /** What all pods together may use. */
  readonly allocatable: () => ResourceAmounts;
}

/** Why a resize can't be carried out on this node, ever; the word for it in metrics. */
export type InfeasibleDetail =
  | "feature_gate_off"
  | "plr_feature_gate_off"
  | "init_container_feature_gate_off"
  | "static_pod"
  | "swap_limitation"
  | "guaranteed_pod_cpu_manager_static_policy"
  | "guaranteed_pod_memory_manager_static_policy"
  | "insufficient_node_allocatable";

export type ResizeVerdict =
  | { readonly type: "none" }
  | { readonly type: "accepted"; readonly preempts?: Extract<AdmissionVerdict, { type: "admitted" }>["preempts"] }
  | { readonly type: "infeasible"; readonly message: string; readonly detail: InfeasibleDetail }
  | { readonly type: "deferred"; readonly message: string };

/** Whether a pod that runs as `running` may have what it is wanted with now. */
export function decideResize(
  { running, wanted }: { readonly running: IdentifiedPod; readonly wanted: IdentifiedPod },
  settings: ResizeSettings,
  admit: (pod: IdentifiedPod) => AdmissionVerdict,
): ResizeVerdict {
  const changes = resizeChanges(running, wanted);
  if (changes.containers.size === 0 && changes.pod.length === 0) return { type: "none" };
  const infeasible = infeasibility({ running, wanted, changes }, settings);
  if (infeasible !== undefined) return { type: "infeasible", ...infeasible };
  const verdict = admit(wanted);
  switch (verdict.type) {
    case "admitted":
      return { type: "accepted", ...(verdict.preempts === undefined ? {} : { preempts: verdict.preempts }) };
    case "rejected":
      return { type: "deferred", message: verdict.message };
    case "undecided":
      return { type: "deferred", message: `waiting for ${verdict.waitsFor}` };
  }
}

interface Changes {
  /** Of the pod as a whole. */
  readonly pod: readonly ResizableResource[];
  readonly containers: ReadonlyMap<string, readonly ResizableResource[]>;
}

/** Which resources of which containers differ, and of the pod as a whole. */
function resizeChanges(running: IdentifiedPod, wanted: IdentifiedPod): Changes {
  const before = new Map(resizableContainers(running).map((container) => [container.name, container]));
  const containers = new Map<string, readonly ResizableResource[]>();
  for (const { name, resources } of resizableContainers(wanted)) {
    const changed = changedResources(before.get(name)?.resources, resources);
    if (changed.length > 0) containers.set(name, changed);
  }
  return { pod: changedResources(running.spec.resources, wanted.spec.resources), containers };
}

/** Whether the pod asks for less, or as much, of everything: then nobody has to make room for it. */
export function asksForNoMore(running: IdentifiedPod, wanted: IdentifiedPod): boolean {
  const before = podResources(running.spec, "with overhead").requests;
  return [...podResources(wanted.spec, "with overhead").requests].every(
    ([resource, amount]) => amount <= (before.get(resource) ?? 0n),
  );
}

/** Whether the pod gives something back that others may have. */
export function asksForLess(running: IdentifiedPod, wanted: IdentifiedPod): boolean {
  const after = podResources(wanted.spec, "with overhead").requests;
  return [...podResources(running.spec, "with overhead").requests].some(
    ([resource, amount]) => amount > (after.get(resource) ?? 0n),
  );
}

function infeasibility(
  { running, wanted, changes }: { running: IdentifiedPod; wanted: IdentifiedPod; changes: Changes },
  settings: ResizeSettings,
): { readonly message: string; readonly detail: InfeasibleDetail } | undefined {
  if (!settings.isEnabled) return { message: "InPlacePodVerticalScaling is disabled", detail: "feature_gate_off" };
  if (isStaticPod(wanted)) {
    return { message: "In-place resize of static-pods is not supported", detail: "static_pod" };
  }
  const gate = closedGate(wanted, changes, settings);
  if (gate !== undefined) return gate;
  if (resizableContainers(wanted).some((container) => changesSwap(running, wanted, container, settings))) {
    return { message: "In-place resize of containers with swap is not supported.", detail: "swap_limitation" };
  }
  const isPinned = qosClassOf(wanted) === "Guaranteed";
  const changesOf = (resource: ResizableResource): boolean =>
    [...changes.containers.values()].some((changed) => changed.includes(resource));
  const pinned = (manager: string, policy: string): string =>
    `Resize is infeasible for Guaranteed Pods alongside ${manager} Manager policy "${policy}"`;
  if (isPinned && settings.pinsCpus && changesOf("cpu")) {
    return { message: pinned("CPU", "static"), detail: "guaranteed_pod_cpu_manager_static_policy" };
  }
  if (isPinned && settings.pinsMemory && changesOf("memory")) {
    return { message: pinned("Memory", "Static"), detail: "guaranteed_pod_memory_manager_static_policy" };
  }
  const message = overCapacity(wanted, settings.allocatable());
  return message === undefined ? undefined : { message, detail: "insufficient_node_allocatable" };
}

/** An API server of v1.34 refuses these; a later one asks what the node says that it can do. */
function closedGate(
  wanted: IdentifiedPod,
  { pod, containers }: Changes,
  { ofPods, ofInitContainers }: ResizeSettings,
): { readonly message: string; readonly detail: InfeasibleDetail } | undefined {
  if (!ofPods && pod.length > 0) {
    return { message: "InPlacePodLevelResourcesVerticalScaling is disabled", detail: "plr_feature_gate_off" };
  }
  const changesInit = containersOf(wanted).some(
    ({ kind, container }) => kind === "init" && containers.has(container.name),
  );
  if (ofInitContainers || !changesInit) return undefined;
  const message = "InPlacePodVerticalScalingInitContainers is disabled";
  return { message, detail: "init_container_feature_gate_off" };
}

/** How much a container may swap follows from its memory request, and the runtime can't change it in place. */
function changesSwap(
  running: IdentifiedPod,
  wanted: IdentifiedPod,
  container: Container,
  { mayUseSwap }: ResizeSettings,
): boolean {
  const before = resizableContainers(running).find(({ name }) => name === container.name);
  if (before === undefined) return false;
  const request = (resources: Container["resources"]): bigint | undefined => amountIn(resources, "requests", "memory");
  if (request(before.resources) === request(container.resources)) return false;
  const policy = container.resizePolicy?.find(({ resourceName }) => resourceName === "memory")?.restartPolicy;
  if (policy === "RestartContainer") return false;
  return mayUseSwap(running, before) || mayUseSwap(wanted, container);
}

/**
 * What alone asks for more than the node has for all pods will never fit. The kubelet leaves its eviction thresholds
 * out of this sum, and so lets a pod wait for ever for what no node of this size can have.
 */
function overCapacity(wanted: IdentifiedPod, allocatable: ResourceAmounts): string | undefined {
  const { requests } = podResources(wanted.spec, "with overhead");
  for (const resource of ["memory", "cpu"] as const) {
    const [requested, capacity] = [requests.get(resource) ?? 0n, allocatable.get(resource)];
    if (capacity === undefined || requested <= capacity) continue;
    const inUnits = resource === "cpu" ? milliUnits : wholeUnits;
    return `Node didn't have enough capacity: ${resource}, requested: ${inUnits(requested)}, capacity: ${inUnits(capacity)}`;
  }
  return undefined;
}
