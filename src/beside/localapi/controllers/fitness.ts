import {
  isTolerated,
  matchesLabels,
  matchesNodeSelector,
  type Node,
  type Pod,
  type Taint,
} from "../../../ground/model/index.ts";

/** Why the pod can't be on the node, in the scheduler's words; undefined when it can. */
export function unfitness(pod: Pod, node: Node): string | undefined {
  if (!isReady(node)) return "node(s) were not ready";
  const tolerations = pod.spec?.tolerations ?? [];
  if (node.spec?.unschedulable === true && !isTolerated(unschedulableTaint, tolerations))
    return "node(s) were unschedulable";
  const taint = (node.spec?.taints ?? []).find(
    (each) => each.effect !== "PreferNoSchedule" && !isTolerated(each, tolerations),
  );
  if (taint !== undefined) return `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ""}}`;
  return matchesNode(pod, node) ? undefined : "node(s) didn't match Pod's node affinity/selector";
}

const unschedulableTaint: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

function isReady({ status }: Node): boolean {
  return status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") === true;
}

function matchesNode({ spec }: Pod, { metadata }: Node): boolean {
  const node = { name: metadata?.name ?? "", labels: metadata?.labels ?? {} };
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return (
    matchesLabels(spec?.nodeSelector ?? {}, node.labels) &&
    (required === undefined || matchesNodeSelector(required.nodeSelectorTerms, node))
  );
}
