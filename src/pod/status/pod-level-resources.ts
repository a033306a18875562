import {
  amountIn,
  type ContainerResources,
  formatQuantity,
  isPodLevelResource,
  podResources,
  type ResourceAmounts,
} from "../../ground/model/index.ts";
import type { StatusInput } from "./input.ts";
import { shownWith } from "./resize-status.ts";

/** Fields of the status of pods that API servers know from v1.35 on. */
interface PodLevelStatus {
  readonly allocatedResources?: Readonly<Record<string, string>>;
  readonly resources?: ContainerResources;
}

/** What the pod as a whole was promised, and what it has. */
export function podLevelStatus({ pod, resize }: StatusInput): PodLevelStatus {
  if (resize.podLevel === undefined) return {};
  const { requests, limits } = podResources(pod.spec, "with overhead");
  const promised = { requests: written(requests), limits: written(limits) };
  const given = resize.given.toPod();
  const memoryRequest = amountIn(given, "requests", "memory") ?? amountIn(promised, "requests", "memory");
  return {
    allocatedResources: promised.requests,
    resources: shownWith(promised, withMemoryRequest(promised, memoryRequest), resize.podLevel.ofCgroup),
  };
}

/** The kernel does not know requests of memory: what was noted stands for it. */
function withMemoryRequest(promised: ContainerResources, memory: bigint | undefined): ContainerResources {
  if (memory === undefined) return promised;
  return { ...promised, requests: { ...promised.requests, memory: formatQuantity(memory, "binary") } };
}

function written(amounts: ResourceAmounts): Readonly<Record<string, string>> {
  const shown = [...amounts].filter(([name]) => isPodLevelResource(name));
  return Object.fromEntries(
    shown.map(([name, amount]) => [name, formatQuantity(amount, name === "cpu" ? "decimal" : "binary")]),
  );
}
