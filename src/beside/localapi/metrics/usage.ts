import { isObject, type JsonObject, listAt, objectAt, stringAt } from "../json.ts";

/** What something uses, as a resource list; undefined while nothing is known of it. */
export type Usage = { readonly cpu: string; readonly memory: string };

export interface PodUsage {
  readonly namespace: string;
  readonly name: string;
  readonly timestamp: string;
  readonly containers: readonly { readonly name: string; readonly usage: Usage }[];
}

/** From a kubelet's /stats/summary what the node uses. */
export function nodeUsage(summary: unknown): { readonly timestamp: string; readonly usage: Usage } | undefined {
  const node = objectAt(summary, "node");
  const usage = usageOf(node);
  return usage === undefined ? undefined : { timestamp: timeOf(node), usage };
}

/** What each pod uses; a pod counts when all its containers are known, as half of one would be taken for the whole. */
export function podUsages(summary: unknown): readonly PodUsage[] {
  return listAt(summary, "pods")
    .filter(isObject)
    .flatMap((pod) => {
      const all = listAt(pod, "containers").filter(isObject);
      const containers = all.flatMap((container) => {
        const usage = usageOf(container);
        return usage === undefined ? [] : [{ name: stringAt(container, "name"), usage }];
      });
      const [first] = all;
      if (first === undefined || containers.length < all.length) return [];
      const { namespace, name } = objectAt(pod, "podRef");
      return [{ namespace: String(namespace), name: String(name), timestamp: timeOf(first), containers }];
    });
}

function usageOf(stats: JsonObject): Usage | undefined {
  const { usageNanoCores } = objectAt(stats, "cpu");
  const { workingSetBytes } = objectAt(stats, "memory");
  if (typeof usageNanoCores !== "number" || typeof workingSetBytes !== "number") return undefined;
  return { cpu: `${usageNanoCores}n`, memory: `${Math.floor(workingSetBytes / 1024)}Ki` };
}

function timeOf(stats: JsonObject): string {
  return stringAt(stats, "cpu", "time");
}
