import { type IdentifiedPod, type PodUid, uidOf } from "../../ground/model/index.ts";
import type { PodState } from "./pod-state.ts";
import type { Worker } from "./pod-worker.ts";

/**
 * The workers by the uid of their pods. Only `PodWorkers` changes it; parts that are made before it read here which pods
 * are worked on, and how far they are.
 */
export class WorkerTable extends Map<PodUid, Worker> {
  stateOf(uid: PodUid): PodState | undefined {
    return this.get(uid)?.state;
  }

  pods(): readonly IdentifiedPod[] {
    return [...this.values()].flatMap((worker) => (worker.type === "pod" ? worker.pod : []));
  }

  /** Pods whose containers are wanted or still run; others have given back what they were promised. */
  activePods(): readonly IdentifiedPod[] {
    return this.pods().filter((pod) => {
      const step = this.stateOf(uidOf(pod))?.step;
      return step === "running" || step === "terminating";
    });
  }
}
