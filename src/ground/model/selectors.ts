import type {
  LabelSelector,
  LabelSelectorRequirement,
  NodeSelectorRequirement,
  NodeSelectorTerm,
} from "./kube/gen/types.ts";
import { labelValue, qualifiedName } from "./pod-validation/index.ts";

type Labels = Readonly<Record<string, string>>;

/** What node selectors look at. */
export interface SelectableNode {
  readonly name: string;
  readonly labels: Labels;
}

/**
 * Whether one of the terms describes the node. Never throws: a term that makes no sense, such as `Gt` with something
 * that is no number, matches nothing, and neither does an empty one.
 */
export function matchesNodeSelector(terms: readonly NodeSelectorTerm[], node: SelectableNode): boolean {
  return terms.some(({ matchExpressions = [], matchFields = [] }) => {
    if (matchExpressions.length + matchFields.length === 0) return false;
    if (!matchExpressions.every(isMeaningful) || !matchFields.every(isFieldMeaningful)) return false;
    return (
      matchExpressions.every((requirement) => matchesRequirement(requirement, node.labels)) &&
      matchFields.every((requirement) =>
        matches(requirement, requirement.key === "metadata.name" ? node.name : undefined),
      )
    );
  });
}

/** Whether the selector chooses an object with these labels. An empty one chooses everything. */
export function matchesLabelSelector(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Labels,
): boolean {
  return (
    matchesLabels(matchLabels, labels) &&
    matchExpressions.every(
      (requirement) =>
        !isComparison(requirement) && isMeaningful(requirement) && matchesRequirement(requirement, labels),
    )
  );
}

/** Whether an object has all of the wanted labels. */
export function matchesLabels(wanted: Labels, labels: Labels): boolean {
  return Object.entries(wanted).every(([key, value]) => ownValue(labels, key) === value);
}

type Requirement = NodeSelectorRequirement | LabelSelectorRequirement;

/** Whether labels are as the requirement asks. */
export function matchesRequirement(requirement: Requirement, labels: Labels): boolean {
  return matches(requirement, ownValue(labels, requirement.key));
}

function matches({ operator, values = [] }: Requirement, value: string | undefined): boolean {
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
      const [own, bound] = [integerOf(value), integerOf(values[0])];
      if (own === undefined || bound === undefined) return false;
      return operator === "Gt" ? own > bound : own < bound;
    }
    default:
      return false;
  }
}

/** A requirement that could not be read spoils its whole term, even where its negation would match. */
function isMeaningful(requirement: Requirement): boolean {
  const { key, operator, values = [] } = requirement;
  if (qualifiedName(key).length > 0 || values.some((value) => labelValue(value).length > 0)) return false;
  switch (operator) {
    case "In":
    case "NotIn":
      return values.length > 0;
    case "Exists":
    case "DoesNotExist":
      return values.length === 0;
    case "Gt":
    case "Lt":
      return values.length === 1 && integerOf(values[0]) !== undefined;
    default:
      return false;
  }
}

function isFieldMeaningful({ operator, values = [] }: NodeSelectorRequirement): boolean {
  return (operator === "In" || operator === "NotIn") && values.length === 1;
}

function isComparison({ operator }: Requirement): boolean {
  return operator === "Gt" || operator === "Lt";
}

const [smallest, largest] = [-(2n ** 63n), 2n ** 63n - 1n];
/** Longer than any 64-bit number is written, leading zeroes apart: labels are short, other texts need not be. */
const longestInteger = 64;

/** A whole number of 64 bits, in the spellings that Go's strconv takes. */
function integerOf(text: string | undefined): bigint | undefined {
  if (text === undefined || text.length > longestInteger || !/^[+-]?\d+$/.test(text)) return undefined;
  const magnitude = BigInt(text.replace(/^[+-]/, ""));
  const value = text.startsWith("-") ? -magnitude : magnitude;
  return value < smallest || value > largest ? undefined : value;
}

/** Names such as `constructor` are keys like any other. */
function ownValue(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
