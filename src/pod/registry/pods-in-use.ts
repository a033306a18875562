import type { RuntimeService } from "../../connections/cri/index.ts";
import { type IdentifiedPod, type PodUid, uidOf } from "../../ground/model/index.ts";
import { runtimeLabels } from "../runtime/index.ts";
import type { WorkerTable } from "../workers/index.ts";

/** Every pod that is wanted, worked on or known to the runtime; undefined while not every source has spoken. */
export function podsInUse(ports: {
  readonly sources: { allReady(): boolean; pods(): readonly IdentifiedPod[] };
  readonly table: WorkerTable;
  readonly runtime: Pick<RuntimeService, "listPodSandbox" | "listContainers">;
}): (signal: AbortSignal) => Promise<ReadonlySet<PodUid> | undefined> {
  const { sources, table, runtime } = ports;
  return async (signal) => {
    if (!sources.allReady()) return undefined;
    const [{ items }, { containers }] = await Promise.all([
      runtime.listPodSandbox({ filter: undefined }, { signal }),
      runtime.listContainers({ filter: undefined }, { signal }),
    ]);
    return new Set([
      ...items.flatMap(({ metadata }) => (metadata === undefined ? [] : [metadata.uid as PodUid])),
      ...containers.flatMap(({ labels }) => (labels[runtimeLabels.podUid] as PodUid | undefined) ?? []),
      ...sources.pods().map(uidOf),
      ...table.keys(),
    ]);
  };
}
