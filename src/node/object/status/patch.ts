import { nodeMergeKeys, strategicPatch } from "../../../connections/kube/index.ts";
import { jsonEqual, type Node } from "../../../ground/model/index.ts";

/** The patch of the status subresource that makes `old` into `next`, metadata included, spec never. */
export function nodeStatusPatch(old: Node, next: Node): object {
  const before = old.status?.addresses ?? [];
  const addresses = next.status?.addresses ?? [];
  // Addresses are merged by type, which makes one of two InternalIPs; a changed list has to be replaced.
  const replaces = before.length > 0 && !jsonEqual(before, addresses);
  const status = replaces ? { ...next.status, addresses: before } : next.status;
  const patch = strategicPatch(
    { metadata: old.metadata, status: old.status },
    { metadata: next.metadata, status },
    nodeMergeKeys,
  ) as { readonly status?: object } | undefined;
  if (!replaces) return patch ?? {};
  return { ...patch, status: { ...patch?.status, addresses: [...addresses, { $patch: "replace" }] } };
}
