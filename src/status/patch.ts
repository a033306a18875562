import { podMergeKeys, strategicPatch } from "../kube/index.ts";
import type { PodStatus } from "../model/index.ts";

/** Others own these: they are never ours to change. */
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
  const patch = strategicPatch({ status: ours(before) }, { status: ours(after) }, podMergeKeys);
  return patch === undefined ? undefined : { metadata: { uid }, ...patch };
}

/** The API writes null for what we leave out (a condition's lastProbeTime), and drops what is empty: neither differs. */
function ours(status: PodStatus): object {
  const fields = Object.entries(status).filter(([name]) => !foreignFields.has(name));
  return Object.fromEntries(fields.flatMap(([name, value]) => withContent(name, value)));
}

function withContent(name: string, value: unknown): readonly [string, unknown][] {
  const compact = compacted(value);
  return compact === undefined ? [] : [[name, compact]];
}

function compacted(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(compacted);
  if (typeof value !== "object") return value;
  const fields = Object.entries(value).flatMap(([name, inner]) => withContent(name, inner));
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}
