import { allEnded, unlessAborted } from "../../ground/base/index.ts";
import { type IdentifiedPod, isSidecar } from "../../ground/model/index.ts";

/**
 * Who waits for whom when a whole pod is stopped: a sidecar outlives the regular containers and every sidecar that
 * comes after it in the spec. Other containers wait for nobody.
 */
export class TerminationOrder {
  readonly #stopped = new Map<string, { readonly promise: Promise<void>; readonly resolve: () => void }>();
  readonly #predecessors: ReadonlyMap<string, readonly string[]>;

  /** `running` names the containers that will be stopped. */
  constructor(pod: IdentifiedPod, running: Iterable<string>) {
    for (const name of running) {
      let resolve: () => void = () => {};
      const promise = new Promise<void>((done) => {
        resolve = done;
      });
      this.#stopped.set(name, { promise, resolve });
    }
    this.#predecessors = predecessors(pod);
  }

  /** Resolves when everything that must stop before `name` has stopped, or when the signal fires. */
  async turnOf(name: string, signal: AbortSignal): Promise<void> {
    const before = (this.#predecessors.get(name) ?? []).flatMap((other) => this.#stopped.get(other)?.promise ?? []);
    if (before.length === 0 || signal.aborted) return;
    try {
      await unlessAborted(allEnded(before), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  stopped(name: string): void {
    this.#stopped.get(name)?.resolve();
  }
}

function predecessors(pod: IdentifiedPod): ReadonlyMap<string, readonly string[]> {
  const result = new Map<string, readonly string[]>();
  const before = pod.spec.containers.map((container) => container.name);
  for (const container of (pod.spec.initContainers ?? []).toReversed()) {
    if (!isSidecar(container)) continue;
    result.set(container.name, [...before]);
    before.push(container.name);
  }
  return result;
}
