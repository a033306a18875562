import type { PodStatus } from "../model/index.ts";

/** Lists that the API merges by a key instead of replacing them. */
const mergeKeys: Readonly<Record<string, string>> = { conditions: "type", podIPs: "ip", hostIPs: "ip" };

/** The API keeps these to itself, or others own them: they are never ours to change. */
const foreignFields: ReadonlySet<string> = new Set([
  "resourceClaimStatuses",
  "extendedResourceClaimStatus",
  "nominatedNodeName",
]);

/**
 * The strategic merge patch that turns one status into another; undefined when there is nothing to change. The uid
 * makes it fail rather than hit a pod of the same name that came later.
 */
export function statusPatch(uid: string, before: PodStatus, after: PodStatus): object | undefined {
  const status: Record<string, unknown> = {};
  const old = before as Readonly<Record<string, unknown>>;
  const wanted = after as Readonly<Record<string, unknown>>;
  for (const field of new Set([...Object.keys(old), ...Object.keys(wanted)])) {
    if (foreignFields.has(field) || same(old[field], wanted[field])) continue;
    const key = mergeKeys[field];
    if (key === undefined) status[field] = wanted[field] ?? null;
    else Object.assign(status, listPatch(field, key, entries(old[field]), entries(wanted[field])));
  }
  return Object.keys(status).length === 0 ? undefined : { metadata: { uid }, status };
}

type Entry = Readonly<Record<string, unknown>>;

function listPatch(field: string, key: string, before: readonly Entry[], after: readonly Entry[]): object {
  const changed = after.filter((entry) => !before.some((known) => known[key] === entry[key] && same(known, entry)));
  const vanished = before.filter((entry) => !after.some((kept) => kept[key] === entry[key]));
  const withNulls = changed.map((entry) => {
    const known = before.find((candidate) => candidate[key] === entry[key]) ?? {};
    const dropped = Object.keys(known).filter((name) => entry[name] === undefined && name !== "lastProbeTime");
    return { ...entry, ...Object.fromEntries(dropped.map((name) => [name, null])) };
  });
  return {
    [`$setElementOrder/${field}`]: after.map((entry) => ({ [key]: entry[key] })),
    [field]: [...vanished.map((entry) => ({ $patch: "delete", [key]: entry[key] })), ...withNulls],
  };
}

function entries(value: unknown): readonly Entry[] {
  return Array.isArray(value) ? value : [];
}

/** Equal as JSON; what is absent, null or empty makes no difference, as the API drops such fields. */
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(canonical(a)) === JSON.stringify(canonical(b));
}

function canonical(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(canonical);
  if (typeof value !== "object") return value;
  const fields = Object.entries(value)
    .map(([name, inner]) => [name, canonical(inner)] as const)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}
