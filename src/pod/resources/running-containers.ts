import { ContainerState, type RuntimeService } from "../../connections/cri/index.ts";
import type { PodUid } from "../../ground/model/index.ts";
import { runtimeLabels } from "../runtime/index.ts";

/** What runs on the node before anybody is decided about. */
export interface RunningContainers {
  readonly areAny: boolean;
  has(uid: PodUid, container: string): boolean;
  /** Whose container has this id. */
  ownerOf(id: string): { readonly uid: PodUid; readonly container: string } | undefined;
}

/** Asked only when what is kept on disk does not fit: then it matters who would lose what. */
export type FindRunning = () => Promise<RunningContainers>;

export function findRunning(runtime: Pick<RuntimeService, "listContainers">, signal: AbortSignal): FindRunning {
  return async () => {
    const { containers } = await runtime.listContainers({ filter: undefined }, { signal });
    const owners = new Map<string, { readonly uid: PodUid; readonly container: string }>();
    const running = new Set<string>();
    for (const { id, labels, state } of containers) {
      const [uid, container] = [labels[runtimeLabels.podUid], labels[runtimeLabels.containerName]];
      if (uid === undefined || container === undefined) continue;
      owners.set(id, { uid: uid as PodUid, container });
      if (state === ContainerState.CONTAINER_RUNNING) running.add(`${uid} ${container}`);
    }
    return {
      areAny: running.size > 0,
      has: (uid, container) => running.has(`${uid} ${container}`),
      ownerOf: (id) => owners.get(id),
    };
  };
}
