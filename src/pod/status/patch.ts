import { podMergeKeys, strategicPatch } from "../../connections/kube/index.ts";
import { jsonEqual, type PodStatus } from "../../ground/model/index.ts";

/** Others own these: they are never ours to change. */
const foreignFields: ReadonlySet<string> = new Set([
  "resourceClaimStatuses",
  "extendedResourceClaimStatus",
  "nominatedNodeName",
]);

const containerLists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] as const;

/**
 * The strategic merge patch that turns one status into another; undefined when there is nothing to change. The uid
 * makes it fail rather than hit a pod of the same name that came later.
 */
export function statusPatch(uid: string, before: PodStatus, after: PodStatus): object | undefined {
  const [old, next] = [ours(before), ours(after)];
  for (const field of containerLists) {
    // What is empty says something too (that a container waits, that it asks for nothing), once there is news of it.
    if (after[field] !== undefined && !jsonEqual(old[field], next[field])) next[field] = after[field];
  }
  const patch = strategicPatch({ status: old }, { status: next }, podMergeKeys);
  return patch === undefined ? undefined : { metadata: { uid }, ...patch };
}

/** The API writes null for what we leave out (a condition's lastProbeTime), and drops what is empty: neither differs. */
function ours(status: PodStatus): Record<string, unknown> {
  return { ...withContent(status, foreignFields) };
}

function withContent(
  value: object,
  left: ReadonlySet<string> = noFields,
): Readonly<Record<string, unknown>> | undefined {
  const kept: [string, unknown][] = [];
  let isWhole = true;
  for (const [name, inner] of Object.entries(value)) {
    const compact = left.has(name) ? undefined : compacted(inner);
    if (compact !== undefined) kept.push([name, compact]);
    if (compact !== inner) isWhole = false;
  }
  if (kept.length === 0) return undefined;
  // Most of a status has nothing to leave out, and needs no copy.
  return isWhole ? (value as Readonly<Record<string, unknown>>) : Object.fromEntries(kept);
}

function compacted(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : compactedItems(value);
  return typeof value === "object" ? withContent(value) : value;
}

function compactedItems(items: readonly unknown[]): readonly unknown[] {
  const kept = items.map(compacted);
  return kept.every((item, index) => item === items[index]) ? items : kept;
}

const noFields: ReadonlySet<string> = new Set();
