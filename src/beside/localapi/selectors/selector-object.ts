import type { LabelSelector, NodeSelectorRequirement } from "../../../ground/model/index.ts";

type Labels = Readonly<Record<string, string>>;

/** Whether a selector that stands in an object, such as a budget's, chooses these labels. */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels): boolean {
  if (selector === undefined) return false;
  const all = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  return all && (selector.matchExpressions ?? []).every((requirement) => matchesRequirement(requirement, labels));
}

export function matchesRequirement({ key, operator, values = [] }: NodeSelectorRequirement, labels: Labels): boolean {
  const found = labels[key];
  switch (operator) {
    case "In":
      return found !== undefined && values.includes(found);
    case "NotIn":
      return found === undefined || !values.includes(found);
    case "Exists":
      return found !== undefined;
    case "DoesNotExist":
      return found === undefined;
    case "Gt":
      return found !== undefined && Number(found) > Number(values[0]);
    case "Lt":
      return found !== undefined && Number(found) < Number(values[0]);
    default:
      return false;
  }
}
