import type { Change } from "./history.ts";

export type ChangeListener = (change: Change) => void;

/** Who wants to be told of changes, by resource. */
export class Listeners {
  readonly #byResource = new Map<string, Set<ChangeListener>>();

  get size(): number {
    return [...this.#byResource.values()].reduce((sum, { size }) => sum + size, 0);
  }

  of(resource: string): Iterable<ChangeListener> {
    return this.#byResource.get(resource) ?? [];
  }

  /** Returns how to stop. */
  add(resource: string, listener: ChangeListener): () => void {
    const present = this.#byResource.get(resource) ?? new Set();
    this.#byResource.set(resource, present.add(listener));
    return () => {
      present.delete(listener);
    };
  }
}
