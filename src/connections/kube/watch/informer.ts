import { waitFor } from "../../../ground/base/index.ts";
import type { KubeObject } from "../resources.ts";
import { ListWatch, type ListWatchPorts, type ListWatchScope } from "./list-watch.ts";
import { type CopyChange, CopyStore } from "./store.ts";

export interface InformerSettings<Kind extends KubeObject, Kept> extends ListWatchScope<Kind> {
  /** What is kept of an object; undefined for nothing at all. */
  readonly keep: (object: Kind) => Kept | undefined;
}

/**
 * A local copy of part of the API server's objects that follows every change. Run it in a scope; handlers are called in
 * the order of the changes, at once, and must not throw.
 */
export class Informer<Kind extends KubeObject, Kept = Kind> {
  readonly #store: CopyStore<Kind, Kept>;
  readonly #listWatch: ListWatch<Kind>;
  readonly #waiting = new Set<() => void>();
  readonly #onListed = new Set<() => void>();
  #hasSynced = false;

  constructor(settings: InformerSettings<Kind, Kept>, ports: ListWatchPorts) {
    this.#store = new CopyStore<Kind, Kept>(settings.keep);
    this.#listWatch = new ListWatch(settings, this.#store, ports, () => this.#listed());
  }

  /** True once everything has been listed at least once. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Why the copy may be old; undefined while all is well. */
  get problem(): string | undefined {
    return this.#listWatch.problem;
  }

  /** When the server last said anything, on the clock's monotonic scale; undefined: never. */
  get heardAt(): number | undefined {
    return this.#listWatch.heardAt;
  }

  /** While it waits before it asks the server again: until when, on the same scale. */
  get nextTryAt(): number | undefined {
    return this.#listWatch.nextTryAt;
  }

  get size(): number {
    return this.#store.size;
  }

  get(namespace: string | undefined, name: string): Kept | undefined {
    return this.#store.get(namespace, name);
  }

  list(): readonly Kept[] {
    return this.#store.all();
  }

  /** Returns how to stop listening. What is known already is not told again. */
  onChange(handler: (change: CopyChange<Kept>) => void): () => void {
    return this.#store.onChange(handler);
  }

  /**
   * Called whenever everything has been listed anew, changes or not. A list is the truth, also where its versions are
   * lower than those seen before: the server was set back to an older state.
   */
  onListed(handler: () => void): () => void {
    this.#onListed.add(handler);
    return () => this.#onListed.delete(handler);
  }

  /** Resolves once everything has been listed. */
  async synced(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#hasSynced) return;
    await waitFor(signal, (done) => {
      this.#waiting.add(done);
      return () => this.#waiting.delete(done);
    });
  }

  /** Ends only with the signal. */
  run(signal: AbortSignal): Promise<void> {
    return this.#listWatch.run(signal);
  }

  /** Try again now, for when there is reason to believe that the server is back. */
  hasten(): void {
    this.#listWatch.hasten();
  }

  #listed(): void {
    this.#hasSynced = true;
    for (const done of this.#waiting) done();
    this.#waiting.clear();
    for (const handler of this.#onListed) handler();
  }
}

/** The object without the server's own bookkeeping, which is often half of it. */
export function withoutManagedFields<Kind extends KubeObject>(object: Kind): Kind {
  if (object.metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
