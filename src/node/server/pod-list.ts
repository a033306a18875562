import type { Pod, PodUid } from "../../ground/model/index.ts";

/** A v1 PodList; upstream's server says `null` where there is no pod, and so do we. */
export function podList(pods: readonly Pod[]): unknown {
  const items = pods.map((pod) => ({ kind: "Pod", apiVersion: "v1", ...pod }));
  return { kind: "PodList", apiVersion: "v1", metadata: {}, items: items.length === 0 ? null : items };
}

export type PodLookup =
  | { readonly found: "one"; readonly pod: Pod; readonly uid: PodUid }
  | { readonly found: "none" }
  | { readonly found: "several"; readonly names: readonly string[] };

/** Finds the pod a person means by a uid, `namespace/name`, or a name that only one pod has. */
export function findPod(pods: readonly Pod[], ref: string): PodLookup {
  const matching =
    firstNonEmpty([
      pods.filter((pod) => pod.metadata?.uid === ref),
      pods.filter((pod) => qualifiedName(pod) === ref),
      pods.filter((pod) => pod.metadata?.name === ref),
      // A static pod as its manifest calls it, without the node's name.
      pods.filter((pod) => pod.metadata?.name === `${ref}-${pod.spec?.nodeName}`),
    ]) ?? [];
  const [pod, ...others] = matching;
  const uid = pod?.metadata?.uid;
  if (pod === undefined || uid === undefined) return { found: "none" };
  if (others.length > 0) return { found: "several", names: matching.map(qualifiedName) };
  return { found: "one", pod, uid: uid as PodUid };
}

function firstNonEmpty<Item>(lists: readonly (readonly Item[])[]): readonly Item[] | undefined {
  return lists.find((list) => list.length > 0);
}

function qualifiedName(pod: Pod): string {
  return `${pod.metadata?.namespace ?? "default"}/${pod.metadata?.name}`;
}
