import type { Kind } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import { badRequest } from "../status-error.ts";
import { type Match, requireFew } from "./label-selector.ts";

export interface FieldRequirement {
  readonly field: string;
  readonly operator: "=" | "!=";
  readonly value: string;
}

/** Understands `a=b,c==d,e!=f`; a backslash takes the meaning from a comma, an equals sign or a backslash. */
export function parseFieldRequirements(text: string): readonly FieldRequirement[] {
  const parts = text.match(/(?:\\.|[^\\,])+/g) ?? [];
  requireFew(parts.length);
  return parts.map((part) => {
    const [, field, operator, value] = /^((?:\\.|[^\\=!])+)(!=|==|=)((?:\\.|[^\\=])*)$/.exec(part.trim()) ?? [];
    if (field === undefined || value === undefined) {
      throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
    }
    return { field: unescaped(field), operator: operator === "!=" ? "!=" : "=", value: unescaped(value) };
  });
}

const unescaped = (text: string): string => text.replace(/\\(.)/g, "$1");

export function matchFields(kind: Kind, text: string): Match {
  const matches = parseFieldRequirements(text).map(({ field, operator, value }) => {
    const read = readerOf(kind, field);
    if (read === undefined) throw badRequest(`field label not supported: ${field}`);
    return (object: ApiObject): boolean => (read(object) === value) === (operator === "=");
  });
  return (object) => matches.every((match) => match(object));
}

function readerOf(kind: Kind, field: string): ((object: ApiObject) => string) | undefined {
  if (field === "metadata.name") return ({ metadata }) => metadata.name ?? "";
  if (field === "metadata.namespace" && kind.namespaced) return ({ metadata }) => metadata.namespace ?? "";
  return Object.hasOwn(kind.selectable, field) ? kind.selectable[field] : undefined;
}
