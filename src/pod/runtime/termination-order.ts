import { allEnded, unlessAborted } from "../../ground/base/index.ts";
import { type IdentifiedPod, isSidecar } from "../../ground/model/index.ts";

/**
 * Who waits for whom when a whole pod is stopped: a sidecar outlives the regular containers and every sidecar that
 * comes after it in the spec. Other containers wait for nobody.
 */
export class TerminationOrder {
  readonly #stopped = new Map<string, { readonly promise: Promise<void>; readonly resolve: () => void }>();
  readonly #turns: ReadonlyMap<string, Promise<void>>;

  /** `running` names the containers that will be stopped. */
  constructor(pod: IdentifiedPod, running: Iterable<string>) {
    for (const name of running) {
      let resolve: () => void = () => {};
      const promise = new Promise<void>((done) => {
        resolve = done;
      });
      this.#stopped.set(name, { promise, resolve });
    }
    this.#turns = this.#turnsOfSidecars(pod);
  }

  /** Resolves when everything that must stop before `name` has stopped, or when the signal fires. */
  async turnOf(name: string, signal: AbortSignal): Promise<void> {
    const turn = this.#turns.get(name);
    if (turn === undefined || signal.aborted) return;
    try {
      await unlessAborted(turn, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  stopped(name: string): void {
    this.#stopped.get(name)?.resolve();
  }

  /**
   * Each sidecar waits for its successor and for whatever that waits for: as many promises as containers. A list of
   * predecessors for each would grow with the square of their number, which pods choose.
   */
  #turnsOfSidecars(pod: IdentifiedPod): ReadonlyMap<string, Promise<void>> {
    const turns = new Map<string, Promise<void>>();
    const regular = pod.spec.containers.flatMap(({ name }) => this.#stopped.get(name)?.promise ?? []);
    let before = regular.length === 0 ? undefined : allEnded(regular);
    for (const container of (pod.spec.initContainers ?? []).toReversed()) {
      if (!isSidecar(container)) continue;
      if (before !== undefined) turns.set(container.name, before);
      const own = this.#stopped.get(container.name)?.promise;
      if (own !== undefined) before = before === undefined ? own : allEnded([before, own]);
    }
    return turns;
  }
}
