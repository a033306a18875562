import { isObject, type JsonObject } from "../json.ts";
import { type FieldSchema, type FieldType, schemaOf } from "../schema/schema.ts";
import { PatchError } from "./patch-error.ts";

/** A configuration laid over what exists: what it names is set, all else stays. */
export function applyConfiguration(current: JsonObject, configuration: JsonObject, type: string): JsonObject {
  return applyFields(current, configuration, { form: "object", type });
}

function applyFields(current: JsonObject, configuration: JsonObject, type: FieldType): JsonObject {
  if (type.form === "object" && schemaOf(type.type)?.atomic === true) return configuration;
  const merged: Record<string, unknown> = { ...current };
  for (const [key, value] of Object.entries(configuration)) {
    if (value === null) continue;
    const field = type.form === "object" ? schemaOf(type.type)?.fields.get(key) : undefined;
    const valueType = type.form === "map" ? type.of : field?.type;
    merged[key] = applyValue(merged[key], value, field, valueType);
  }
  return merged;
}

function applyValue(
  current: unknown,
  value: unknown,
  field: FieldSchema | undefined,
  type: FieldType | undefined,
): unknown {
  if (current === undefined || type === undefined || field?.atomic === true) return value;
  if (Array.isArray(value) && Array.isArray(current)) {
    if (field?.isSet === true) return [...current, ...value.filter((item) => !current.includes(item))];
    if (field?.mapKeys === undefined || type.form !== "list") return value;
    return applyItems(current, value, field.mapKeys, type.of);
  }
  return isObject(value) && isObject(current) ? applyFields(current, value, type) : value;
}

function applyItems(
  current: readonly unknown[],
  items: readonly unknown[],
  keys: readonly string[],
  type: FieldType,
): readonly unknown[] {
  const merged = [...current];
  for (const item of items) {
    if (!isObject(item)) throw new PatchError("malformed", `${JSON.stringify(item)} stands in a list of objects`);
    const index = merged.findIndex(
      (other) => isObject(other) && keys.every((key) => sameKey(other[key], item[key], key)),
    );
    const existing = merged[index];
    if (index < 0) merged.push(item);
    else merged[index] = applyFields(isObject(existing) ? existing : {}, item, type);
  }
  return merged;
}

/** A port without a protocol is a TCP port, and is stored as one. */
function sameKey(a: unknown, b: unknown, key: string): boolean {
  return a === b || (key === "protocol" && (a ?? "TCP") === (b ?? "TCP"));
}
