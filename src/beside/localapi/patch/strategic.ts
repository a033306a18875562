import { isObject, type JsonObject } from "../json.ts";
import { type FieldSchema, type FieldType, schemaOf } from "../schema/schema.ts";
import { mergeItems, mergeValues, removeValues } from "./lists.ts";
import { PatchError } from "./patch-error.ts";

const orderPrefix = "$setElementOrder/";
const removalPrefix = "$deleteFromPrimitiveList/";

/** Strategic merge patch: a merge patch that knows from the type how to treat lists, and obeys directives ($patch…). */
export function strategicMergePatch(current: JsonObject, patch: JsonObject, type: string): JsonObject {
  return mergeObject(current, patch, { form: "object", type });
}

function mergeObject(current: JsonObject, patch: JsonObject, type: FieldType): JsonObject {
  const directive = patch["$patch"];
  if (directive === "replace") return withoutDirectives(patch);
  if (directive === "delete") return {};
  if (directive !== undefined && directive !== "merge") {
    throw new PatchError("unmergeable", `unknown patch type: ${String(directive)} in map`);
  }
  const merged = retained(current, patch);
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(removalPrefix)) remove(merged, key.slice(removalPrefix.length), value);
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$")) continue;
    if (value === null) delete merged[key];
    else merged[key] = mergeField(merged[key], value, fieldOf(type, key), patch[orderPrefix + key]);
  }
  for (const [key, value] of Object.entries(patch)) {
    const field = key.slice(orderPrefix.length);
    if (key.startsWith(orderPrefix) && !Object.hasOwn(patch, field)) reorder(merged, field, value, type);
  }
  return merged;
}

/** The keys that the patch keeps: all, or those it lists. */
function retained(current: JsonObject, patch: JsonObject): Record<string, unknown> {
  const keys = patch["$retainKeys"];
  if (keys === undefined) return { ...current };
  const listed = new Set<unknown>(Array.isArray(keys) ? keys : []);
  const isStray = (key: string): boolean => !key.startsWith("$") && patch[key] !== null && !listed.has(key);
  if (!Array.isArray(keys) || Object.keys(patch).some(isStray)) {
    throw new PatchError("malformed", "invalid patch format of retainKeys");
  }
  return Object.fromEntries(Object.entries(current).filter(([key]) => listed.has(key)));
}

function fieldOf(type: FieldType, key: string): FieldSchema | undefined {
  if (type.form === "object") return schemaOf(type.type)?.fields.get(key);
  if (type.form !== "map") return undefined;
  return { required: false, type: type.of, retainKeys: false, replace: false, isSet: false, atomic: false };
}

const anything: FieldType = { form: "scalar", name: "any" };

function mergeField(current: unknown, value: unknown, field: FieldSchema | undefined, order: unknown): unknown {
  const type = field?.type ?? anything;
  if (Array.isArray(value)) {
    if (field?.mergeKey === undefined) return value;
    const existing = Array.isArray(current) ? current : [];
    const itemType = type.form === "list" ? type.of : anything;
    if (field.mergeKey === "") return mergeValues(existing, value, orderOf(order));
    return mergeItems(existing, value, field.mergeKey, orderOf(order), (from, patch) =>
      mergeObject(from, patch, itemType),
    );
  }
  if (!isObject(value)) return value;
  if (field?.replace === true) return withoutDirectives(value);
  return mergeObject(isObject(current) ? current : {}, value, type);
}

function orderOf(order: unknown): readonly unknown[] | undefined {
  if (order === undefined) return undefined;
  if (!Array.isArray(order)) throw new PatchError("malformed", "invalid patch format of setElementOrder list");
  return order;
}

function remove(merged: Record<string, unknown>, key: string, values: unknown): void {
  if (!Array.isArray(values)) throw new PatchError("malformed", "invalid patch format of primitive list");
  const current = merged[key];
  if (Array.isArray(current)) merged[key] = removeValues(current, values);
}

/** A patch may change nothing but the order. */
function reorder(merged: Record<string, unknown>, key: string, order: unknown, type: FieldType): void {
  const current = merged[key];
  if (Array.isArray(current)) merged[key] = mergeField(current, [], fieldOf(type, key), order);
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key, value]) => !key.startsWith("$") && value !== null));
}
