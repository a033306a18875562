import type { TaskScope } from "../../ground/base/index.ts";
import type { ObservedPod, PodUid } from "../../ground/model/index.ts";
import type { ContainerGc } from "./container-gc.ts";
import type { PodObserver } from "./observer.ts";

/** The observer as a pod's worker asks it: instances that nobody needs any more are removed beside the work on the pod. */
export class PruningObserver {
  readonly #observer: PodObserver;
  readonly #gc: Pick<ContainerGc, "pruneDead">;
  readonly #scope: TaskScope;

  constructor(observer: PodObserver, gc: Pick<ContainerGc, "pruneDead">, scope: TaskScope) {
    this.#observer = observer;
    this.#gc = gc;
    this.#scope = scope;
  }

  async inspect(uid: PodUid, signal: AbortSignal): Promise<ObservedPod> {
    const observed = await this.#observer.inspect(uid, signal);
    if (hasSpareRecords(observed)) {
      this.#scope.spawn(`prune ${uid}`, (pruning) => this.#gc.pruneDead(observed, pruning));
    }
    return observed;
  }

  latest(uid: PodUid): ObservedPod | undefined {
    return this.#observer.latest(uid);
  }

  doubt(uid: PodUid): void {
    this.#observer.doubt(uid);
  }

  forget(uid: PodUid): void {
    this.#observer.forget(uid);
  }
}

/** Besides the newest instance of a name, which its status needs, and the one before, one more has ended. */
function hasSpareRecords({ containers }: ObservedPod): boolean {
  const ended = new Map<string, number>();
  for (const { name, state } of containers) if (state === "exited") ended.set(name, (ended.get(name) ?? 0) + 1);
  return [...ended.values()].some((count) => count > 1);
}
