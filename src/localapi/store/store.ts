import { deepFreeze } from "../../model/index.ts";
import { type ApiObject, keyOfObject, withMetadata } from "../object.ts";
import { type Change, History } from "./history.ts";

export type { Change } from "./history.ts";

/** Where objects are kept beyond the life of the process. Calls arrive in the order of revisions. */
export interface Disk {
  /** Remembers the change; `object` is undefined when it was deleted. */
  write(revision: number, resource: string, key: string, object: ApiObject | undefined): void;
  /** Resolves when all that was written so far would survive a crash. */
  flushed(): Promise<void>;
}

export interface StoredState {
  readonly revision: number;
  readonly objects: Iterable<{ readonly resource: string; readonly object: ApiObject }>;
}

export interface StoreOptions {
  readonly keptChanges: number;
  readonly disk?: Disk;
  readonly state?: StoredState;
  onListenerError(this: void, error: unknown): void;
}

type Listener = (change: Change) => void;

/**
 * All objects with their revisions, and the changes that led here. Everything is synchronous: a read, a decision and
 * the write that follows from it can't be interleaved with others.
 */
export class Store {
  readonly #objects = new Map<string, Map<string, ApiObject>>();
  readonly #history: History;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #disk: Disk | undefined;
  readonly #onListenerError: StoreOptions["onListenerError"];
  readonly #unannounced: Change[] = [];
  #revision: number;

  constructor(options: StoreOptions) {
    this.#disk = options.disk;
    this.#onListenerError = options.onListenerError;
    // Clients take "0" for "any version will do", so the first version is a later one.
    this.#revision = options.state?.revision ?? 1;
    for (const { resource, object } of options.state?.objects ?? []) {
      this.#table(resource).set(keyOfObject(object), deepFreeze(object));
    }
    this.#history = new History(options.keptChanges, this.#revision);
  }

  get revision(): number {
    return this.#revision;
  }

  /** Changes up to this revision are forgotten. */
  get compactedRevision(): number {
    return this.#history.compactedRevision;
  }

  get(resource: string, key: string): ApiObject | undefined {
    return this.#objects.get(resource)?.get(key);
  }

  /** In no order, for who looks through all of them often. */
  each(resource: string): Iterable<ApiObject> {
    return this.#objects.get(resource)?.values() ?? [];
  }

  /** In the order of their keys. */
  list(resource: string): readonly ApiObject[] {
    return sortedByKey(this.#objects.get(resource) ?? new Map());
  }

  /** What `list` gave at an earlier revision; undefined when that is forgotten. */
  listAt(resource: string, revision: number): readonly ApiObject[] | undefined {
    if (revision === this.#revision) return this.list(resource);
    if (revision < this.compactedRevision) return undefined;
    const objects = new Map(this.#objects.get(resource));
    for (const { type, object, previous } of this.#history.newestFirstAfter(revision, resource)) {
      if (type === "ADDED") objects.delete(keyOfObject(object));
      else if (previous !== undefined) objects.set(keyOfObject(object), previous);
    }
    return sortedByKey(objects);
  }

  /** Stores the object under a new revision, which it carries from then on. */
  put(resource: string, object: ApiObject): ApiObject {
    const key = keyOfObject(object);
    const table = this.#table(resource);
    const previous = table.get(key);
    const stored = deepFreeze(withMetadata(object, { resourceVersion: String(++this.#revision) }));
    table.set(key, stored);
    this.#disk?.write(this.#revision, resource, key, stored);
    if (previous === undefined) this.#announce({ type: "ADDED", revision: this.#revision, resource, object: stored });
    else this.#announce({ type: "MODIFIED", revision: this.#revision, resource, object: stored, previous });
    return stored;
  }

  /** Removes the object; what is left of it carries the revision of its removal. */
  delete(resource: string, key: string): ApiObject | undefined {
    const table = this.#table(resource);
    const previous = table.get(key);
    if (previous === undefined) return undefined;
    table.delete(key);
    const object = deepFreeze(withMetadata(previous, { resourceVersion: String(++this.#revision) }));
    this.#disk?.write(this.#revision, resource, key, undefined);
    this.#announce({ type: "DELETED", revision: this.#revision, resource, object, previous });
    return object;
  }

  /** Changes of the resource after the revision, oldest first; undefined when some are forgotten. */
  changesAfter(revision: number, resource: string): readonly Change[] | undefined {
    return revision < this.compactedRevision ? undefined : this.#history.oldestFirstAfter(revision, resource);
  }

  /**
   * Calls the listener on each later change of the resource, or of all for "*". Returns how to stop. A listener may
   * write: what it causes is announced after what it is told of, so that all listeners see the same order.
   */
  subscribe(resource: string, listener: Listener): () => void {
    let listeners = this.#listeners.get(resource);
    if (listeners === undefined) {
      listeners = new Set();
      this.#listeners.set(resource, listeners);
    }
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Forgets every change so far, as etcd does from time to time. */
  compact(): void {
    this.#history.compact(this.#revision);
  }

  async flushed(): Promise<void> {
    await this.#disk?.flushed();
  }

  #table(resource: string): Map<string, ApiObject> {
    let table = this.#objects.get(resource);
    if (table === undefined) {
      table = new Map();
      this.#objects.set(resource, table);
    }
    return table;
  }

  #announce(change: Change): void {
    this.#history.add(change);
    this.#unannounced.push(change);
    if (this.#unannounced.length > 1) return;
    for (let next: Change | undefined = change; next !== undefined; next = this.#unannounced[0]) {
      for (const listener of this.#listeners.get(next.resource) ?? []) this.#tell(listener, next);
      for (const listener of this.#listeners.get("*") ?? []) this.#tell(listener, next);
      this.#unannounced.shift();
    }
  }

  /** A listener's trouble is not that of who wrote, nor of the other listeners. */
  #tell(listener: Listener, change: Change): void {
    try {
      listener(change);
    } catch (error) {
      this.#onListenerError(error);
    }
  }
}

function sortedByKey(objects: ReadonlyMap<string, ApiObject>): readonly ApiObject[] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}
