import type { LabelSelector } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { labelValue, qualifiedName } from "./names.ts";

type StringMap = Readonly<Record<string, string>> | undefined;

export function checkLabels(labels: StringMap, path: string, problems: ProblemList): void {
  for (const [key, value] of Object.entries(labels ?? {})) {
    problems.invalidEach(path, key, qualifiedName(key));
    problems.invalidEach(`${path}[${key}]`, value, labelValue(value));
  }
}

const annotationBytes = 256 * 1024;

export function checkAnnotations(annotations: StringMap, path: string, problems: ProblemList): void {
  let size = 0;
  for (const [key, value] of Object.entries(annotations ?? {})) {
    problems.invalidEach(path, key, qualifiedName(key.toLowerCase()));
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (size > annotationBytes) problems.tooLong(path, annotationBytes);
}

export function checkLabelSelector(selector: LabelSelector | undefined, path: string, problems: ProblemList): void {
  if (selector === undefined) return;
  checkLabels(selector.matchLabels, `${path}.matchLabels`, problems);
  for (const [index, { key, operator, values = [] }] of (selector.matchExpressions ?? []).entries()) {
    const at = `${path}.matchExpressions[${index}]`;
    checkOperator(operator, values, at, problems);
    problems.invalidEach(`${at}.key`, key, qualifiedName(key));
    for (const [valueIndex, value] of values.entries()) {
      problems.invalidEach(`${at}.values[${valueIndex}]`, value, labelValue(value));
    }
  }
}

/** That the operator is one that all selectors know, and has the values that it needs. */
export function checkOperator(operator: string, values: readonly string[], path: string, problems: ProblemList): void {
  switch (operator) {
    case "In":
    case "NotIn":
      if (values.length === 0) {
        problems.required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'");
      }
      break;
    case "Exists":
    case "DoesNotExist":
      if (values.length > 0) {
        problems.forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
      }
      break;
    default:
      problems.invalid(`${path}.operator`, operator, "not a valid selector operator");
  }
}
