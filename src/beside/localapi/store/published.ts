import { type ApiObject, keyOfObject } from "../object.ts";
import { type Change, History } from "./history.ts";
import { type ChangeListener, Listeners } from "./listeners.ts";
import { sortedByKey, Tables } from "./tables.ts";

/**
 * What clients may be told: only what would survive a crash. Were they told more, the server could come back without it
 * and give its revisions to other changes, which clients that resume their watches then would never see.
 */
export class Published {
  readonly #tables = new Tables();
  readonly #history: History;
  readonly #watchers = new Listeners();
  readonly #onListenerError: (error: unknown) => void;
  #revision: number;

  constructor(revision: number, keptChanges: number, onListenerError: (error: unknown) => void) {
    this.#revision = revision;
    this.#history = new History(keptChanges, revision);
    this.#onListenerError = onListenerError;
  }

  get tables(): Tables {
    return this.#tables;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Changes up to this revision are forgotten. */
  get compactedRevision(): number {
    return this.#history.compactedRevision;
  }

  get(resource: string, key: string): ApiObject | undefined {
    return this.#tables.get(resource, key);
  }

  /** In the order of their keys. */
  list(resource: string): readonly ApiObject[] {
    return this.#tables.list(resource);
  }

  /** What `list` gave at an earlier revision; undefined when that is forgotten, or has never been. */
  listAt(resource: string, revision: number): readonly ApiObject[] | undefined {
    if (revision === this.#revision) return this.list(resource);
    if (!this.#isKnown(revision)) return undefined;
    const objects = this.#tables.copyOf(resource);
    for (const { type, object, previous } of this.#history.newestFirstAfter(revision, resource)) {
      if (type === "ADDED") objects.delete(keyOfObject(object));
      else if (previous !== undefined) objects.set(keyOfObject(object), previous);
    }
    return sortedByKey(objects);
  }

  /** Changes of the resource after the revision, oldest first; undefined when some are forgotten, or it has never been. */
  changesAfter(revision: number, resource: string): readonly Change[] | undefined {
    return this.#isKnown(revision) ? this.#history.oldestFirstAfter(revision, resource) : undefined;
  }

  /** Calls the listener on each later change of the resource. Returns how to stop. */
  watch(resource: string, listener: ChangeListener): () => void {
    return this.#watchers.add(resource, listener);
  }

  /** For tests that look for what was left behind. */
  get watcherCount(): number {
    return this.#watchers.size;
  }

  /** Forgets every change so far, as etcd does from time to time. */
  compact(): void {
    this.#history.compact(this.#revision);
  }

  publish(change: Change): void {
    const { type, revision, resource, object } = change;
    this.#revision = revision;
    if (type === "DELETED") this.#tables.delete(resource, keyOfObject(object));
    else this.#tables.set(resource, object);
    this.#history.add(change);
    for (const watcher of this.#watchers.of(resource)) {
      try {
        watcher(change);
      } catch (error) {
        this.#onListenerError(error);
      }
    }
  }

  #isKnown(revision: number): boolean {
    return revision >= this.compactedRevision && revision <= this.#revision;
  }
}
