import { jsonEqual } from "../../ground/model/index.ts";

/** Lists that are merged item by item: the path such as `status.conditions`, and the field that names an item. */
export type MergeKeys = Readonly<Record<string, string>>;

type JsonObject = Readonly<Record<string, unknown>>;

/** The merge keys of what the agent patches: statuses of nodes and pods. */
export const nodeMergeKeys: MergeKeys = { "status.conditions": "type", "status.addresses": "type" };
export const podMergeKeys: MergeKeys = {
  "status.conditions": "type",
  "status.podIPs": "ip",
  "status.hostIPs": "ip",
};

/** A strategic merge patch that turns `old` into `next`; undefined when they are the same. */
export function strategicPatch(old: object, next: object, mergeKeys: MergeKeys): object | undefined {
  const patch = diffObjects(old as JsonObject, next as JsonObject, "", mergeKeys);
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function diffObjects(old: JsonObject, next: JsonObject, path: string, mergeKeys: MergeKeys): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(next)) {
    const before = old[key];
    if (value === undefined || jsonEqual(before, value)) continue;
    const at = path === "" ? key : `${path}.${key}`;
    if (isObject(before) && isObject(value)) patch[key] = diffObjects(before, value, at, mergeKeys);
    else if (Array.isArray(before) && Array.isArray(value) && mergeKeys[at] !== undefined) {
      Object.assign(patch, diffItems(key, before, value, mergeKeys[at], at, mergeKeys));
    } else patch[key] = value;
  }
  for (const key of Object.keys(old)) {
    if (old[key] !== undefined && next[key] === undefined) patch[key] = null;
  }
  return patch;
}

function diffItems(
  field: string,
  old: readonly unknown[],
  next: readonly unknown[],
  mergeKey: string,
  path: string,
  mergeKeys: MergeKeys,
): Record<string, unknown> {
  const before = new Map(old.filter(isObject).map((item) => [item[mergeKey], item]));
  const changes: unknown[] = [];
  for (const item of next.filter(isObject)) {
    const name = item[mergeKey];
    const known = before.get(name);
    before.delete(name);
    if (known === undefined) changes.push(item);
    else if (!jsonEqual(known, item)) changes.push({ ...diffObjects(known, item, path, mergeKeys), [mergeKey]: name });
  }
  for (const name of before.keys()) changes.push({ $patch: "delete", [mergeKey]: name });
  return {
    [`$setElementOrder/${field}`]: next.filter(isObject).map((item) => ({ [mergeKey]: item[mergeKey] })),
    ...(changes.length > 0 && { [field]: changes }),
  };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
