import { type LabelSelectorRequirement, matchesRequirement } from "../../../ground/model/index.ts";
import type { ApiObject } from "../object.ts";
import { badRequest } from "../status-error.ts";

export type Match = (object: ApiObject) => boolean;

const setBased = /^([^\s!=<>(),]+)\s+(in|notin)\s*\(([^()]*)\)$/;
const comparison = /^([^\s!=<>(),]+)\s*(==|!=|=|<|>)\s*([^\s!=<>(),]*)$/;
const existence = /^(!?)\s*([^\s!=<>(),]+)$/;

/** Understands `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`. */
export function parseLabelSelector(text: string): Match {
  const requirements = splitOutsideParentheses(text).map((part) => parseRequirement(part.trim()));
  return ({ metadata }) => requirements.every((requirement) => matchesRequirement(requirement, metadata.labels ?? {}));
}

function splitOutsideParentheses(text: string): readonly string[] {
  if (text.trim() === "") return [];
  const parts: string[] = [];
  let start = 0;
  let depth = 0;
  for (let index = 0; index <= text.length; index++) {
    const letter = text[index];
    if (letter === "(") depth++;
    else if (letter === ")") depth--;
    else if (letter === undefined || (letter === "," && depth <= 0)) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  requireFew(parts.length);
  return parts;
}

/** Each object is held against all of them. */
const mostRequirements = 1000;

export function requireFew(count: number): void {
  if (count <= mostRequirements) return;
  throw badRequest(`the selector has ${count} requirements, at most ${mostRequirements} are possible`);
}

function parseRequirement(text: string): LabelSelectorRequirement {
  const [, setKey, setOperator, members] = setBased.exec(text) ?? [];
  if (setKey !== undefined && members !== undefined) {
    const values = members.split(",").map((value) => value.trim());
    return { key: setKey, operator: setOperator === "in" ? "In" : "NotIn", values };
  }
  const [, key, operator, value] = comparison.exec(text) ?? [];
  if (key !== undefined && value !== undefined)
    return { key, operator: comparing(operator, value, text), values: [value] };
  const [, negation, name] = existence.exec(text) ?? [];
  if (name === undefined) throw badRequest(`unable to parse requirement: found '${text}'`);
  return { key: name, operator: negation === "" ? "Exists" : "DoesNotExist" };
}

function comparing(operator: string | undefined, value: string, text: string): string {
  if (operator === "=" || operator === "==") return "In";
  if (operator === "!=") return "NotIn";
  if (!/^-?\d+$/.test(value)) throw badRequest(`unable to parse requirement: found '${text}', wanted a number`);
  return operator === ">" ? "Gt" : "Lt";
}
