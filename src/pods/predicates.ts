import {
  addAmounts,
  type IdentifiedPod,
  isStaticPod,
  milliUnits,
  type Node,
  type NodeSelectorRequirement,
  type NodeSelectorTerm,
  podResources,
  type ResourceAmounts,
  type Taint,
  type Toleration,
  wholeUnits,
} from "../model/index.ts";
import type { AdmissionHandler, AdmissionVerdict } from "./admission.ts";

const admitted: AdmissionVerdict = { type: "admitted" };

/** What the scheduler promised for this pod must still hold on this node. */
export function predicatesHandler(ports: {
  readonly node: () => Node | undefined;
  readonly allocatable: () => ResourceAmounts;
  readonly maxPods: () => number;
}): AdmissionHandler {
  return (pod, others) => {
    const node = ports.node();
    const rivals = others.filter(({ metadata }) => metadata.uid !== pod.metadata.uid && !isOver(metadata.uid, others));
    return (
      resourcesVerdict(pod, rivals, ports.allocatable(), ports.maxPods()) ??
      affinityVerdict(pod, node) ??
      taintVerdict(pod, node?.spec?.taints ?? []) ??
      admitted
    );
  };
}

function isOver(uid: string, pods: readonly IdentifiedPod[]): boolean {
  const phase = pods.find(({ metadata }) => metadata.uid === uid)?.status?.phase;
  return phase === "Succeeded" || phase === "Failed";
}

function resourcesVerdict(
  pod: IdentifiedPod,
  others: readonly IdentifiedPod[],
  allocatable: ResourceAmounts,
  maxPods: number,
): AdmissionVerdict | undefined {
  if (others.length + 1 > maxPods) return lacking("pods", 1n, BigInt(others.length), BigInt(maxPods));
  const { requests } = podResources(pod.spec, "with overhead");
  let used: ResourceAmounts = new Map();
  for (const other of others) used = addAmounts(used, podResources(other.spec, "with overhead").requests);
  for (const name of ["cpu", "memory", "ephemeral-storage", ...extended(requests)]) {
    const wanted = requests.get(name) ?? 0n;
    const capacity = allocatable.get(name);
    // What the node does not list is none of ours to count.
    if (wanted === 0n || capacity === undefined) continue;
    const taken = used.get(name) ?? 0n;
    if (taken + wanted <= capacity) continue;
    const inUnits = name === "cpu" ? milliUnits : wholeUnits;
    return lacking(name, inUnits(wanted), inUnits(taken), inUnits(capacity));
  }
  return undefined;
}

function extended(requests: ResourceAmounts): readonly string[] {
  return [...requests.keys()].filter((name) => name.includes("/"));
}

function lacking(resource: string, requested: bigint, used: bigint, capacity: bigint): AdmissionVerdict {
  return {
    type: "rejected",
    reason: `OutOf${resource}`,
    message: `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
  };
}

function affinityVerdict(pod: IdentifiedPod, node: Node | undefined): AdmissionVerdict | undefined {
  const selector = pod.spec.nodeSelector ?? {};
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (Object.keys(selector).length === 0 && terms === undefined) return undefined;
  const labels = node?.metadata?.labels ?? {};
  const name = node?.metadata?.name ?? "";
  const selected = Object.entries(selector).every(([key, value]) => labels[key] === value);
  if (selected && (terms === undefined || terms.some((term) => matchesTerm(term, labels, name)))) return undefined;
  const message = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
  return { type: "rejected", reason: "NodeAffinity", message };
}

function matchesTerm(term: NodeSelectorTerm, labels: Readonly<Record<string, string>>, nodeName: string): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((requirement) => matches(requirement, labels[requirement.key])) &&
    matchFields.every((requirement) => matches(requirement, requirement.key === "metadata.name" ? nodeName : undefined))
  );
}

function matches({ operator, values = [] }: NodeSelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
    case "Lt": {
      const [bound] = values;
      if (value === undefined || bound === undefined || !/^-?\d+$/.test(value)) return false;
      return operator === "Gt" ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound);
    }
    default:
      return false;
  }
}

function taintVerdict(pod: IdentifiedPod, taints: readonly Taint[]): AdmissionVerdict | undefined {
  if (isStaticPod(pod)) return undefined;
  const tolerations = pod.spec.tolerations ?? [];
  const intolerable = taints.some(
    (taint) => taint.effect === "NoExecute" && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
  if (!intolerable) return undefined;
  const message = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
  return { type: "rejected", reason: "TaintToleration", message };
}

function tolerates({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if (effect !== undefined && effect !== "" && effect !== taint.effect) return false;
  if (key !== undefined && key !== "" && key !== taint.key) return false;
  if (operator === "Exists") return true;
  return key !== undefined && key !== "" && (value ?? "") === (taint.value ?? "");
}
