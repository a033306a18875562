import type { Node, NodeSelectorTerm, Pod, Taint, Toleration } from "../../../ground/model/index.ts";
import { matchesRequirement } from "../selectors/selector-object.ts";

/** Why the pod can't be on the node, in the scheduler's words; undefined when it can. */
export function unfitness(pod: Pod, node: Node): string | undefined {
  if (!isReady(node)) return "node(s) were not ready";
  const tolerations = pod.spec?.tolerations ?? [];
  if (node.spec?.unschedulable === true && !tolerates(tolerations, unschedulableTaint))
    return "node(s) were unschedulable";
  const taint = (node.spec?.taints ?? []).find(
    (each) => each.effect !== "PreferNoSchedule" && !tolerates(tolerations, each),
  );
  if (taint !== undefined) return `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ""}}`;
  return matchesNode(pod, node) ? undefined : "node(s) didn't match Pod's node affinity/selector";
}

const unschedulableTaint: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

function isReady({ status }: Node): boolean {
  return status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") === true;
}

function tolerates(tolerations: readonly Toleration[], taint: Taint): boolean {
  return tolerations.some(({ key, operator, value = "", effect }) => {
    if (effect && effect !== taint.effect) return false;
    if (key && key !== taint.key) return false;
    return operator === "Exists" || (Boolean(key) && value === (taint.value ?? ""));
  });
}

function matchesNode({ spec }: Pod, node: Node): boolean {
  const labels = node.metadata?.labels ?? {};
  if (!Object.entries(spec?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)) return false;
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || required.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Node): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  const labels = node.metadata?.labels ?? {};
  const fields = { "metadata.name": node.metadata?.name ?? "" };
  return (
    matchExpressions.every((requirement) => matchesRequirement(requirement, labels)) &&
    matchFields.every((requirement) => matchesRequirement(requirement, fields))
  );
}
