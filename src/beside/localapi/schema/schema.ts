import { table } from "../../../ground/base/index.ts";
import { schemaTable } from "../gen/schema.ts";

/** The shape of a field's value. */
export type FieldType =
  | { readonly form: "scalar"; readonly name: string }
  | { readonly form: "object"; readonly type: string }
  | { readonly form: "list"; readonly of: FieldType }
  | { readonly form: "map"; readonly of: FieldType };

export interface FieldSchema {
  readonly required: boolean;
  readonly type: FieldType;
  /** Strategic merge: items of the list are merged by this key; "" when the items are plain values. */
  readonly mergeKey?: string;
  /** Strategic merge: keys that the patch does not list are dropped. */
  readonly retainKeys: boolean;
  /** Strategic merge: the field is replaced whole although it is an object. */
  readonly replace: boolean;
  /** Apply: the keys by which items of a list are told apart. */
  readonly mapKeys?: readonly string[];
  /** Apply: a list of distinct plain values. */
  readonly isSet: boolean;
  readonly atomic: boolean;
}

export interface TypeSchema {
  readonly name: string;
  readonly atomic: boolean;
  readonly fields: ReadonlyMap<string, FieldSchema>;
}

/** Fields of API servers after v1.34 that nodes write, as in the generated table. */
const laterFields: Readonly<Record<string, string>> = table({
  "core.v1.NodeStatus": "declaredFeatures:[]string~atomic",
  "core.v1.PodStatus": "allocatedResources:{}quantity resources:core.v1.ResourceRequirements",
});

const parsed = new Map<string, TypeSchema>();

/** The type with this name, such as `core.v1.Pod`; undefined when the table does not have it. */
export function schemaOf(name: string): TypeSchema | undefined {
  const known = parsed.get(name);
  if (known !== undefined) return known;
  const text = Object.hasOwn(schemaTable, name) ? schemaTable[name] : undefined;
  if (text === undefined) return undefined;
  const schema = parseType(name, `${text} ${laterFields[name] ?? ""}`);
  parsed.set(name, schema);
  return schema;
}

function parseType(name: string, text: string): TypeSchema {
  const words = text.split(" ").filter((word) => word !== "");
  const fields = new Map<string, FieldSchema>();
  for (const word of words) {
    if (word.startsWith("~")) continue;
    const colon = word.indexOf(":");
    const key = word.slice(0, colon);
    const required = key.endsWith("!");
    fields.set(required ? key.slice(0, -1) : key, parseField(required, word.slice(colon + 1)));
  }
  return { name, atomic: words.includes("~atomic"), fields };
}

function parseField(required: boolean, text: string): FieldSchema {
  const [type = "", ...rules] = text.split("~");
  const argumentOf = (rule: string): string | undefined =>
    rules.find((found) => found.startsWith(`${rule}=`))?.slice(rule.length + 1);
  const mergeKey = argumentOf("merge");
  const mapKeys = argumentOf("map")?.split(",");
  return {
    required,
    type: parseFieldType(type),
    ...(mergeKey !== undefined && { mergeKey }),
    ...(mapKeys !== undefined && { mapKeys }),
    retainKeys: rules.includes("retainKeys"),
    replace: rules.includes("replace"),
    isSet: rules.includes("set"),
    atomic: rules.includes("atomic"),
  };
}

function parseFieldType(text: string): FieldType {
  if (text.startsWith("[]")) return { form: "list", of: parseFieldType(text.slice(2)) };
  if (text.startsWith("{}")) return { form: "map", of: parseFieldType(text.slice(2)) };
  return text.includes(".") ? { form: "object", type: text } : { form: "scalar", name: text };
}
