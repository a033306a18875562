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
  return withContent(status, foreignFields) ?? {};
}

function withContent(value: object, left: ReadonlySet<string> = noFields): Record<string, unknown> | undefined {
  const kept: [string, unknown][] = [];
  for (const [name, inner] of Object.entries(value)) {
    const compact = left.has(name) ? undefined : compacted(inner);
    if (compact !== undefined) kept.push([name, compact]);
  }
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function compacted(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(compacted);
  return typeof value === "object" ? withContent(value) : value;
}

const noFields: ReadonlySet<string> = new Set();
