import { textTable } from "./text-table.ts";

/** What is read of the agent's figures. */
export interface UsageAnswer {
  readonly node: { readonly nodeName: string } & Used;
  readonly pods: readonly PodUsed[] | null;
}

interface Used {
  readonly cpu?: { readonly usageCoreNanoSeconds?: number; readonly usageNanoCores?: number };
  readonly memory?: { readonly workingSetBytes?: number; readonly availableBytes?: number };
}

interface PodUsed extends Used {
  readonly podRef: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly containers: readonly ({ readonly name: string } & Used)[];
}

/** How fast and how much; undefined: not known. */
export interface UsedAmount {
  readonly cpuMillicores: number | undefined;
  readonly memoryBytes: number | undefined;
}

export interface TopAnswer {
  readonly node: { readonly name: string } & UsedAmount;
  readonly pods: readonly ({
    readonly namespace: string;
    readonly name: string;
    readonly containers: readonly ({ readonly name: string } & UsedAmount)[];
  } & UsedAmount)[];
}

/** What was used between two looks that lie `elapsedMs` apart, who used most first. */
export function usageBetween(
  before: UsageAnswer,
  after: UsageAnswer,
  elapsedMs: number,
  sort: "cpu" | "memory",
): TopAnswer {
  // The counter of a whole machine never stands still: an older agent has told the same figures twice.
  const isSame = before.node.cpu?.usageCoreNanoSeconds === after.node.cpu?.usageCoreNanoSeconds;
  const usage = (earlier: Used | undefined, later: Used): UsedAmount => {
    const memoryBytes = later.memory?.workingSetBytes;
    if (isSame) {
      const rate = later.cpu?.usageNanoCores;
      return { cpuMillicores: rate === undefined ? undefined : Math.round(rate / 1e6), memoryBytes };
    }
    const from = earlier?.cpu?.usageCoreNanoSeconds;
    const to = later.cpu?.usageCoreNanoSeconds;
    const isKnown = from !== undefined && to !== undefined && to >= from && elapsedMs > 0;
    return {
      cpuMillicores: isKnown ? Math.round((to - from) / 1000 / elapsedMs) : undefined,
      memoryBytes,
    };
  };
  const earlierPods = new Map((before.pods ?? []).map((pod) => [pod.podRef.uid, pod]));
  const pods = (after.pods ?? []).map((pod) => {
    const earlier = earlierPods.get(pod.podRef.uid);
    const containers = pod.containers.map((container) => ({
      name: container.name,
      ...usage(
        earlier?.containers.find(({ name }) => name === container.name),
        container,
      ),
    }));
    return { namespace: pod.podRef.namespace, name: pod.podRef.name, ...usage(earlier, pod), containers };
  });
  const amount = ({ cpuMillicores, memoryBytes }: UsedAmount): number =>
    (sort === "cpu" ? cpuMillicores : memoryBytes) ?? -1;
  return {
    node: { name: after.node.nodeName, ...usage(before.node, after.node) },
    pods: pods.sort((a, b) => amount(b) - amount(a)),
  };
}

export function topText({ node, pods }: TopAnswer, withContainers: boolean): string {
  const row = (name: string, usage: UsedAmount): readonly string[] => [name, cpu(usage), memory(usage)];
  const rows = pods.flatMap((pod) => [
    row(`${pod.namespace}/${pod.name}`, pod),
    ...(withContainers ? pod.containers.map((container) => row(`  ${container.name}`, container)) : []),
  ]);
  const table = textTable([["NAME", "CPU", "MEMORY"], row(`node ${node.name}`, node), ...rows]);
  return `${table.join("\n")}\n`;
}

function cpu({ cpuMillicores }: UsedAmount): string {
  return cpuMillicores === undefined ? "-" : `${cpuMillicores}m`;
}

function memory({ memoryBytes }: UsedAmount): string {
  return memoryBytes === undefined ? "-" : `${Math.round(memoryBytes / (1024 * 1024))}Mi`;
}
