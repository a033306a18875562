import type { PodSchedulingGate, PodSpec, Toleration, TopologySpreadConstraint } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkLabelSelector } from "./labels.ts";
import { labelValue, qualifiedName } from "./names.ts";

const effects: readonly string[] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

export function checkTolerations(tolerations: readonly Toleration[], path: string, problems: ProblemList): void {
  for (const [index, toleration] of tolerations.entries()) {
    const { key = "", operator = "", value = "", effect = "", tolerationSeconds } = toleration;
    const at = `${path}[${index}]`;
    if (key !== "") problems.invalidEach(`${at}.key`, key, qualifiedName(key));
    else if (operator !== "Exists") {
      problems.invalid(
        `${at}.operator`,
        operator,
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      );
    }
    if (tolerationSeconds !== undefined && effect !== "NoExecute") {
      problems.invalid(`${at}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    switch (operator) {
      case "":
      case "Equal":
        problems.invalidEach(`${at}.value`, value, labelValue(value));
        break;
      case "Exists":
        if (value !== "") {
          problems.invalid(`${at}.value`, value, "value must be empty when `operator` is 'Exists'");
        }
        break;
      default:
        problems.unsupported(`${at}.operator`, operator, ["Equal", "Exists"]);
    }
    if (effect !== "" && !effects.includes(effect)) problems.unsupported(`${at}.effect`, effect, effects);
  }
}

const spreadActions: readonly string[] = ["DoNotSchedule", "ScheduleAnyway"];
const inclusionPolicies: readonly string[] = ["Honor", "Ignore"];

export function checkTopologySpread(
  constraints: readonly TopologySpreadConstraint[],
  path: string,
  problems: ProblemList,
): void {
  const identity = ({ topologyKey, whenUnsatisfiable }: TopologySpreadConstraint): string =>
    JSON.stringify([topologyKey, whenUnsatisfiable]);
  const lastIndexes = new Map(constraints.map((constraint, index) => [identity(constraint), index]));
  for (const [index, constraint] of constraints.entries()) {
    const at = `${path}[${index}]`;
    const { maxSkew, topologyKey, whenUnsatisfiable, minDomains, labelSelector } = constraint;
    if (maxSkew <= 0) problems.invalid(`${at}.maxSkew`, maxSkew, "must be greater than zero");
    if (topologyKey === "") problems.required(`${at}.topologyKey`, "can not be empty");
    if (!spreadActions.includes(whenUnsatisfiable)) {
      problems.unsupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, spreadActions);
    }
    if (lastIndexes.get(identity(constraint)) !== index) {
      problems.duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, `{${topologyKey}, ${whenUnsatisfiable}}`);
    }
    if (minDomains !== undefined) {
      if (minDomains <= 0) problems.invalid(`${at}.minDomains`, minDomains, "must be greater than zero");
      if (whenUnsatisfiable !== "DoNotSchedule") {
        problems.invalid(
          `${at}.minDomains`,
          minDomains,
          `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`,
        );
      }
    }
    for (const name of ["nodeAffinityPolicy", "nodeTaintsPolicy"] as const) {
      const policy = constraint[name];
      if (policy !== undefined && !inclusionPolicies.includes(policy)) {
        problems.unsupported(`${at}.${name}`, policy, inclusionPolicies);
      }
    }
    checkMatchLabelKeys(constraint, `${at}.matchLabelKeys`, problems);
    checkLabelSelector(labelSelector, `${at}.labelSelector`, problems);
  }
}

function checkMatchLabelKeys(
  { matchLabelKeys = [], labelSelector }: TopologySpreadConstraint,
  path: string,
  problems: ProblemList,
): void {
  if (matchLabelKeys.length === 0) return;
  if (labelSelector === undefined) problems.forbidden(path, "must not be specified when labelSelector is not set");
  const selected = new Set([
    ...Object.keys(labelSelector?.matchLabels ?? {}),
    ...(labelSelector?.matchExpressions ?? []).map(({ key }) => key),
  ]);
  for (const [index, key] of matchLabelKeys.entries()) {
    problems.invalidEach(`${path}[${index}]`, key, qualifiedName(key));
    if (selected.has(key)) {
      problems.invalid(`${path}[${index}]`, key, "exists in both matchLabelKeys and labelSelector");
    }
  }
}

export function checkSchedulingGates(gates: readonly PodSchedulingGate[], spec: PodSpec, problems: ProblemList): void {
  const names = new Set<string>();
  for (const [index, { name }] of gates.entries()) {
    const at = `spec.schedulingGates[${index}]`;
    problems.invalidEach(at, name, qualifiedName(name));
    if (names.has(name)) problems.duplicate(at, name);
    names.add(name);
  }
  if (gates.length > 0 && spec.nodeName) {
    problems.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared");
  }
}
