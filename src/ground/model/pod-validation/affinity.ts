import type {
  Affinity,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
} from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkLabelSelector, checkOperator } from "./labels.ts";
import { dnsLabel, dnsSubdomain, labelValue, qualifiedName } from "./names.ts";

export function checkAffinity(affinity: Affinity | undefined, path: string, problems: ProblemList): void {
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinity ?? {};
  const required = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required !== undefined) {
    const at = `${path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`;
    if (required.nodeSelectorTerms.length === 0) problems.required(at, "must have at least one node selector term");
    for (const [index, term] of required.nodeSelectorTerms.entries()) {
      checkNodeTerm(term, "required", `${at}[${index}]`, problems);
    }
  }
  for (const [index, term] of (nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const at = `${path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
    checkWeight(term.weight, `${at}.weight`, problems);
    checkNodeTerm(term.preference, "preferred", `${at}.preference`, problems);
  }
  checkPodAffinity(podAffinity, `${path}.podAffinity`, problems);
  checkPodAffinity(podAntiAffinity, `${path}.podAntiAffinity`, problems);
}

function checkWeight(weight: number, path: string, problems: ProblemList): void {
  if (weight < 1 || weight > 100) problems.invalid(path, weight, "must be in the range 1-100");
}

function checkNodeTerm(
  term: NodeSelectorTerm,
  strength: "required" | "preferred",
  path: string,
  problems: ProblemList,
): void {
  for (const [index, requirement] of (term.matchExpressions ?? []).entries()) {
    checkNodeRequirement(requirement, strength, `${path}.matchExpressions[${index}]`, problems);
  }
  for (const [index, requirement] of (term.matchFields ?? []).entries()) {
    checkNodeField(requirement, `${path}.matchFields[${index}]`, problems);
  }
}

function checkNodeRequirement(
  { key, operator, values = [] }: NodeSelectorRequirement,
  strength: "required" | "preferred",
  path: string,
  problems: ProblemList,
): void {
  if (operator === "Gt" || operator === "Lt") {
    if (values.length !== 1) {
      problems.required(`${path}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
  } else checkOperator(operator, values, path, problems);
  problems.invalidEach(`${path}.key`, key, qualifiedName(key));
  // A preference for a label that no node can have does no harm.
  if (strength === "preferred") return;
  for (const [index, value] of values.entries()) {
    problems.invalidEach(`${path}.values[${index}]`, value, labelValue(value));
  }
}

function checkNodeField(
  { key, operator, values = [] }: NodeSelectorRequirement,
  path: string,
  problems: ProblemList,
): void {
  if (operator !== "In" && operator !== "NotIn") {
    problems.invalid(`${path}.operator`, operator, "not a valid selector operator");
  } else if (values.length !== 1) {
    problems.required(
      `${path}.values`,
      "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
    );
  }
  if (key !== "metadata.name") {
    problems.invalid(`${path}.key`, key, "not a valid field selector key");
    return;
  }
  for (const [index, value] of values.entries()) {
    problems.invalidEach(`${path}.values[${index}]`, value, dnsSubdomain(value));
  }
}

function checkPodAffinity(affinity: PodAffinity | undefined, path: string, problems: ProblemList): void {
  for (const [index, term] of (affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    checkPodTerm(term, `${path}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`, problems);
  }
  for (const [index, term] of (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const at = `${path}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
    checkWeight(term.weight, `${at}.weight`, problems);
    checkPodTerm(term.podAffinityTerm, `${at}.podAffinityTerm`, problems);
  }
}

function checkPodTerm(term: PodAffinityTerm, path: string, problems: ProblemList): void {
  const { labelSelector, namespaceSelector, namespaces = [], topologyKey } = term;
  checkLabelSelector(labelSelector, `${path}.labelSelector`, problems);
  checkLabelSelector(namespaceSelector, `${path}.namespaceSelector`, problems);
  for (const name of namespaces) problems.invalidEach(`${path}.namespaces`, name, dnsLabel(name));
  checkLabelKeys(term, path, problems);
  if (topologyKey === "") problems.required(`${path}.topologyKey`, "can not be empty");
  else problems.invalidEach(`${path}.topologyKey`, topologyKey, qualifiedName(topologyKey));
}

function checkLabelKeys(term: PodAffinityTerm, path: string, problems: ProblemList): void {
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = term;
  for (const name of ["matchLabelKeys", "mismatchLabelKeys"] as const) {
    const keys = term[name] ?? [];
    if (keys.length > 0 && labelSelector === undefined) {
      problems.forbidden(`${path}.${name}`, "must not be specified when labelSelector is not set");
      continue;
    }
    for (const [index, key] of keys.entries()) {
      problems.invalidEach(`${path}.${name}[${index}]`, key, qualifiedName(key));
    }
  }
  const mismatching = new Set(mismatchLabelKeys);
  for (const [index, key] of matchLabelKeys.entries()) {
    if (!mismatching.has(key)) continue;
    problems.invalid(`${path}.matchLabelKeys[${index}]`, key, "exists in both matchLabelKeys and mismatchLabelKeys");
  }
}
