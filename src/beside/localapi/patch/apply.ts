import { isObject, type JsonObject } from "../json.ts";
import { type FieldSchema, type FieldType, schemaOf } from "../schema/schema.ts";
import { ItemsByIdentity, withValues } from "./lists.ts";
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
    if (field?.isSet === true) return withValues(current, value);
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
  const merged = new ItemsByIdentity(current, (item) => identityBy(keys, item));
  for (const item of items) {
    if (!isObject(item)) throw new PatchError("malformed", `${JSON.stringify(item)} stands in a list of objects`);
    merged.replace(identityBy(keys, item), (existing) =>
      existing === undefined ? item : applyFields(isObject(existing) ? existing : {}, item, type),
    );
  }
  return merged.list();
}

/** A port without a protocol is a TCP port, and is stored as one. */
function identityBy(keys: readonly string[], item: unknown): string {
  if (!isObject(item)) return "";
  return JSON.stringify(keys.map((key) => item[key] ?? (key === "protocol" ? "TCP" : null)));
}
