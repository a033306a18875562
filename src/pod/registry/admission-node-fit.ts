import {
  type IdentifiedPod,
  isCriticalPod,
  isStaticPod,
  isTerminalPhase,
  isTolerated,
  matchesLabels,
  matchesNodeSelector,
  type Node,
  type ResourceAmounts,
  type Taint,
} from "../../ground/model/index.ts";
import { type AdmissionHandler, type AdmissionVerdict, admitted } from "./admission.ts";
import { type Lack, lackingResources, unitsOf } from "./lacking-resources.ts";
import { makeRoom } from "./preemption-choice.ts";

/** The Node by which pods are judged. */
export interface JudgingNode {
  readonly node: Node;
  /** False: it is the last one known, or made up from our own settings, because the API server can't be reached. */
  readonly isConfirmed: boolean;
}

export interface NodeFitPorts {
  /** Undefined while neither the API server has shown the Node nor is known to be out of reach. */
  readonly node: () => JudgingNode | undefined;
  /** What pods may use, how many of them there may be included. */
  readonly allocatable: () => ResourceAmounts;
}

/** What the scheduler promised for this pod must still hold on this node. */
export function nodeFitHandler(ports: NodeFitPorts): AdmissionHandler {
  return (pod, others) => {
    const known = ports.node();
    if (known === undefined && asksForNode(pod)) return { type: "undecided", waitsFor: "the Node" };
    const rivals = rivalsOf(pod, others);
    const misfit = affinityVerdict(pod, known?.node) ?? taintVerdict(pod, known?.node.spec?.taints ?? []);
    if (misfit !== undefined && known?.isConfirmed === false) {
      // Refused is refused for good, and labels and taints may have changed since.
      return { type: "undecided", waitsFor: "the API server: the Node as last known would not take this pod" };
    }
    const lacks = lackingResources(pod, rivals, ports.allocatable());
    const [first] = lacks;
    if (first === undefined) return misfit ?? admitted;
    if (!isCriticalPod(pod)) return shortageVerdict(first);
    // Making room is of no use to a pod that does not belong here.
    return misfit ?? makeRoom(pod, rivals, lacks);
  };
}

/** Who is counted beside the pod. */
export function rivalsOf(pod: IdentifiedPod, others: readonly IdentifiedPod[]): readonly IdentifiedPod[] {
  return others.filter((other) => other.metadata.uid !== pod.metadata.uid && !isTerminalPhase(other.status?.phase));
}

/** Whether the Node's labels or taints can make a difference. */
function asksForNode(pod: IdentifiedPod): boolean {
  const { nodeSelector = {}, affinity } = pod.spec;
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return !isStaticPod(pod) || Object.keys(nodeSelector).length > 0 || required !== undefined;
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
  const isSelected = matchesLabels(selector, labels);
  if (isSelected && (terms === undefined || matchesNodeSelector(terms, { name, labels }))) return undefined;
  const message = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
  return { type: "rejected", reason: "NodeAffinity", message };
}

function taintVerdict(pod: IdentifiedPod, taints: readonly Taint[]): AdmissionVerdict | undefined {
  if (isStaticPod(pod)) return undefined;
  const tolerations = pod.spec.tolerations ?? [];
  const intolerable = taints.some((taint) => taint.effect === "NoExecute" && !isTolerated(taint, tolerations));
  if (!intolerable) return undefined;
  const message = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
  return { type: "rejected", reason: "TaintToleration", message };
}
