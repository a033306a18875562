import { badRequest } from "../api-error.ts";
import type { ApiObject } from "../object.ts";

export type Match = (object: ApiObject) => boolean;

type Labels = Readonly<Record<string, string>>;

const setBased = /^([^\s!=<>(),]+)\s+(in|notin)\s*\(([^()]*)\)$/;
const comparison = /^([^\s!=<>(),]+)\s*(==|!=|=|<|>)\s*([^\s!=<>(),]*)$/;
const existence = /^(!?)\s*([^\s!=<>(),]+)$/;

/** Understands `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`. */
export function parseLabelSelector(text: string): Match {
  const requirements = splitOutsideParentheses(text).map((part) => parseRequirement(part.trim()));
  return ({ metadata }) => requirements.every((matches) => matches(metadata.labels ?? {}));
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

function parseRequirement(text: string): (labels: Labels) => boolean {
  const [, setKey, setOperator, members] = setBased.exec(text) ?? [];
  if (setKey !== undefined && members !== undefined) {
    const values = new Set(members.split(",").map((value) => value.trim()));
    return setOperator === "in"
      ? (labels) => values.has(labels[setKey] ?? "") && Object.hasOwn(labels, setKey)
      : (labels) => !Object.hasOwn(labels, setKey) || !values.has(labels[setKey] ?? "");
  }
  const [, key, operator, value] = comparison.exec(text) ?? [];
  if (key !== undefined && value !== undefined) return compare(key, operator ?? "", value, text);
  const [, negation, name] = existence.exec(text) ?? [];
  if (name === undefined) throw badRequest(`unable to parse requirement: found '${text}'`);
  return (labels) => Object.hasOwn(labels, name) === (negation === "");
}

function compare(key: string, operator: string, value: string, text: string): (labels: Labels) => boolean {
  switch (operator) {
    case "=":
    case "==":
      return (labels) => Object.hasOwn(labels, key) && labels[key] === value;
    case "!=":
      return (labels) => labels[key] !== value;
    default: {
      if (!/^-?\d+$/.test(value)) throw badRequest(`unable to parse requirement: found '${text}', wanted a number`);
      const limit = BigInt(value);
      return (labels) => {
        const found = labels[key] ?? "";
        if (!/^-?\d+$/.test(found)) return false;
        return operator === ">" ? BigInt(found) > limit : BigInt(found) < limit;
      };
    }
  }
}
