import {
  amountsOf,
  type Container,
  type IdentifiedPod,
  isHugePages,
  isSidecar,
  wholeUnits,
} from "../../../ground/model/index.ts";
import { mayBePinned, peakOf } from "../cpu/requested-cpus.ts";
import { unexpected } from "../topology/hints.ts";

/** Bytes by type, memory first. */
export type RequestedMemory = ReadonlyMap<string, number>;

/** What a container is to have of single NUMA nodes; nothing: it may use any. */
export function requestedMemory(pod: IdentifiedPod, container: Container): RequestedMemory {
  if (!mayBePinned(pod)) return new Map();
  const requested: [string, number][] = [];
  for (const [type, amount] of amountsOf(container.resources?.requests)) {
    if (type !== "memory" && !isHugePages(type)) continue;
    const bytes = wholeUnits(amount);
    if (bytes > 2n ** 63n - 1n) throw unexpected("[memorymanager] failed to represent quantity as int64");
    requested.push([type, Number(bytes)]);
  }
  const rank = (type: string): string => (type === "memory" ? "" : type);
  return new Map(requested.sort(([a], [b]) => (rank(a) < rank(b) ? -1 : 1)));
}

/** The most that the containers of a pod have at one time. What only init containers ask for does not count. */
export function requestedMemoryOfPod(pod: IdentifiedPod): RequestedMemory {
  const lasting = [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter(isSidecar)];
  const types = new Set(lasting.flatMap((container) => [...requestedMemory(pod, container).keys()]));
  return new Map(
    [...types].map((type) => [type, peakOf(pod, (container) => requestedMemory(pod, container).get(type) ?? 0)]),
  );
}
