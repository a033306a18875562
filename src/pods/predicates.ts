import {
  addAmounts,
  type IdentifiedPod,
  isCriticalPod,
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
import { chooseVictims } from "./preemption.ts";

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
    const misfit = affinityVerdict(pod, node) ?? taintVerdict(pod, node?.spec?.taints ?? []);
    const lacks = lackingResources(pod, rivals, ports.allocatable(), ports.maxPods());
    const [first] = lacks;
    if (first === undefined) return misfit ?? admitted;
    if (!isCriticalPod(pod)) return shortageVerdict(first);
    // Making room is of no use to a pod that does not belong here.
    return misfit ?? makeRoom(pod, rivals, lacks);
  };
}

function isOver(uid: string, pods: readonly IdentifiedPod[]): boolean {
  const phase = pods.find(({ metadata }) => metadata.uid === uid)?.status?.phase;
  return phase === "Succeeded" || phase === "Failed";
}

interface Lack {
  readonly resource: string;
  readonly requested: bigint;
  readonly used: bigint;
  readonly capacity: bigint;
}

function lackingResources(
  pod: IdentifiedPod,
  others: readonly IdentifiedPod[],
  allocatable: ResourceAmounts,
  maxPods: number,
): readonly Lack[] {
  const lacks: Lack[] = [];
  const [count, most] = [BigInt(others.length), BigInt(maxPods)];
  if (count + 1n > most) lacks.push({ resource: "pods", requested: 1n, used: count, capacity: most });
  const { requests } = podResources(pod.spec, "with overhead");
  let used: ResourceAmounts = new Map();
  for (const other of others) used = addAmounts(used, podResources(other.spec, "with overhead").requests);
  for (const resource of ["cpu", "memory", "ephemeral-storage", ...extended(requests)]) {
    const requested = requests.get(resource) ?? 0n;
    const capacity = allocatable.get(resource);
    // What the node does not list is none of ours to count.
    if (requested === 0n || capacity === undefined) continue;
    const taken = used.get(resource) ?? 0n;
    if (taken + requested > capacity) lacks.push({ resource, requested, used: taken, capacity });
  }
  return lacks;
}

function makeRoom(pod: IdentifiedPod, others: readonly IdentifiedPod[], lacks: readonly Lack[]): AdmissionVerdict {
  const shortage = new Map(
    lacks.map(({ resource, requested, used, capacity }) => [resource, requested - (capacity - used)] as const),
  );
  const choice = chooseVictims(pod, others, shortage);
  if ("victims" in choice) {
    return { type: "admitted", preempts: { victims: choice.victims, resource: lacks[0]?.resource ?? "" } };
  }
  const missing = [...choice.missing].map(([name, amount]) => `(res: ${name}, q: ${unitsOf(name)(amount)}), `);
  const cause = `no set of running pods found to reclaim resources: [${missing.join("")}]`;
  const message = `Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: ${cause}`;
  return { type: "rejected", reason: "UnexpectedAdmissionError", message };
}

function unitsOf(resource: string): (amount: bigint) => bigint {
  if (resource === "pods") return (amount) => amount;
  return resource === "cpu" ? milliUnits : wholeUnits;
}

function extended(requests: ResourceAmounts): readonly string[] {
  return [...requests.keys()].filter((name) => name.includes("/"));
}

function shortageVerdict({ resource, ...amounts }: Lack): AdmissionVerdict {
  const inUnits = unitsOf(resource);
  const [requested, used, capacity] = [amounts.requested, amounts.used, amounts.capacity].map(inUnits);
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
