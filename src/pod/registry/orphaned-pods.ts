import { isAbort, KeyedWorkers, type Logger, type TaskScope } from "../../ground/base/index.ts";
import type { ObservedPod, PodUid } from "../../ground/model/index.ts";
import type { PodWorkers } from "../workers/index.ts";
import type { WantedPods } from "./wanted-pods.ts";

export interface OrphanedPodsPorts {
  readonly wanted: WantedPods;
  readonly workers: Pick<PodWorkers, "adoptOrphan" | "knows">;
  readonly inspect: (uid: PodUid, signal: AbortSignal) => Promise<ObservedPod>;
  /** Whether it is certain that no source wants a pod that none has named. */
  readonly mayStop: (observed: ObservedPod) => boolean;
  readonly log: Logger;
}

/**
 * Pods that run here and that no source names: one whose manifest was deleted, or that the API server let go, while no
 * agent ran. They are stopped like any other pod, as soon as it is certain that nobody wants them (decision 0011).
 */
export class OrphanedPods {
  readonly #ports: OrphanedPodsPorts;
  /** Each by itself: one that can't be inspected must hold up nobody. */
  readonly #looks: KeyedWorkers<PodUid>;

  constructor(scope: TaskScope, ports: OrphanedPodsPorts) {
    this.#ports = ports;
    this.#looks = new KeyedWorkers(scope, (uid, signal) => this.stopIfOrphaned(uid, signal));
  }

  /** What the runtime has and no worker does. */
  unclaimed(): readonly PodUid[] {
    return [...this.#ports.wanted.found.keys()];
  }

  /** Call when a source has spoken and whenever the runtime was looked through. */
  stopAll(): void {
    for (const uid of this.unclaimed()) this.#looks.wake(uid);
  }

  async stopIfOrphaned(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { workers, wanted, log } = this.#ports;
    if (wanted.isWanted(uid)) return;
    try {
      if (!workers.knows(uid)) {
        const observed = await this.#ports.inspect(uid, signal);
        if (wanted.isWanted(uid)) return;
        const isThere = observed.sandboxes.length + observed.containers.length > 0;
        if (isThere && !this.#ports.mayStop(observed)) return;
        if (isThere) this.#stop(uid, observed);
      }
      wanted.found.delete(uid);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      log.warn("Could not inspect a pod that is in no source; trying again later", { uid, err: error });
    }
  }

  #stop(uid: PodUid, observed: ObservedPod): void {
    const { name: pod, namespace } = observed;
    this.#ports.log.info("Stopping a pod that runs but is in no source", { pod, namespace, uid });
    this.#ports.workers.adoptOrphan(uid, { fullName: `${pod}_${namespace}`, graceSeconds: graceOf(observed) });
  }
}

/** The grace its containers were created with: whoever removed the manifest while we were away meant it kindly. */
function graceOf(observed: ObservedPod): number {
  const graces = observed.containers.flatMap(({ annotations }) => annotations.terminationGraceSeconds ?? []);
  return graces.length === 0 ? 1 : Math.max(...graces);
}
