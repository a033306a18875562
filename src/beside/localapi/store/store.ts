import { deepFreeze, messageOf } from "../../../ground/base/index.ts";
import { type ApiObject, keyOfObject, withMetadata } from "../object.ts";
import { StatusError } from "../status-error.ts";
import type { Change } from "./history.ts";
import { type ChangeListener, Listeners } from "./listeners.ts";
import { Published } from "./published.ts";
import { Tables } from "./tables.ts";

export type { Change } from "./history.ts";

/** Where objects are kept beyond the life of the process. Calls arrive in the order of revisions. */
export interface Disk {
  /** Whom to tell what became of the writes. */
  attach(owner: DiskOwner): void;
  /** Remembers the change; `text` is undefined when the object was deleted. */
  write(revision: number, resource: string, key: string, text: string | undefined): void;
  /** Resolves when all that was written so far would survive a crash, rejects when it never will. */
  flushed(): Promise<void>;
}

export interface DiskOwner {
  /** All changes up to this revision would survive a crash. */
  stored(revision: number): void;
  /** What was written and not stored is lost; nothing more is to be written for now. */
  failed(error: unknown): void;
  /** The disk can be written again and holds what it held at this revision. */
  mended(revision: number): void;
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
  /** The disk can't be written, or can again when there is no error. */
  onDisk?(this: void, error: unknown): void;
}

/** As etcd: what is larger belongs elsewhere. */
const mostObjectBytes = 1.5 * 1024 * 1024;
/** All objects are held in memory, in about three times the space of their text. */
const mostBytesOfAll = 256 * 1024 * 1024;

/**
 * All objects with their revisions. Everything is synchronous: a read, a decision and the write that follows from it
 * can't be interleaved with others. What is written shows here at once and in `published` when it is on the disk;
 * decisions are made by the first, answers by the second.
 */
export class Store {
  readonly published: Published;
  readonly #tables = new Tables();
  readonly #listeners = new Listeners();
  readonly #disk: Disk | undefined;
  readonly #options: StoreOptions;
  readonly #unannounced: Change[] = [];
  /** Changes that the disk does not have yet, in order. */
  #unpublished: Change[] = [];
  #revision: number;
  readonly #sizes = new WeakMap<ApiObject, number>();
  #bytes = 0;
  /** Why nothing can be written at present. */
  #refusal: StatusError | undefined;

  constructor(options: StoreOptions) {
    this.#disk = options.disk;
    this.#options = options;
    // Clients take "0" for "any version will do", so the first version is a later one.
    this.#revision = options.state?.revision ?? 1;
    this.published = new Published(this.#revision, options.keptChanges, options.onListenerError);
    for (const { resource, object } of options.state?.objects ?? []) {
      this.#tables.set(resource, deepFreeze(object));
      this.#measure(object, JSON.stringify(object).length);
    }
    this.published.tables.become(this.#tables);
    this.#disk?.attach({
      stored: (revision) => this.#publishUpTo(revision),
      failed: (error) => this.#turnBack(error),
      mended: (revision) => this.#goOn(revision),
    });
  }

  get(resource: string, key: string): ApiObject | undefined {
    return this.#tables.get(resource, key);
  }

  /** In no order, for who looks through all of them often. */
  each(resource: string): Iterable<ApiObject> {
    return this.#tables.each(resource);
  }

  /** In the order of their keys. */
  list(resource: string): readonly ApiObject[] {
    return this.#tables.list(resource);
  }

  /** How many objects stand in the namespace. */
  countIn(namespace: string): number {
    return this.#tables.countIn(namespace);
  }

  /** Stores the object under a new revision, which it carries from then on. */
  put(resource: string, object: ApiObject): ApiObject {
    this.#requireWritable();
    const key = keyOfObject(object);
    const previous = this.#tables.get(resource, key);
    const revision = this.#revision + 1;
    // All that can fail comes before the first change: the text of an object may be too long, or its depth too great.
    const stored = deepFreeze(withMetadata(object, { resourceVersion: String(revision) }));
    const text = JSON.stringify(stored);
    const grown = this.#bytes + text.length - this.#sizeOf(previous);
    if (text.length > mostObjectBytes) throw tooLarge(text.length);
    if (grown > mostBytesOfAll && text.length > this.#sizeOf(previous)) throw full();
    this.#revision = revision;
    this.#bytes = grown;
    this.#sizes.set(stored, text.length);
    this.#tables.set(resource, stored);
    const change = { revision, resource, object: stored, bytes: text.length };
    this.#announce(previous ? { ...change, type: "MODIFIED", previous } : { ...change, type: "ADDED" }, key, text);
    return stored;
  }

  /** Removes the object; what is left of it carries the revision of its removal. */
  delete(resource: string, key: string): ApiObject | undefined {
    this.#requireWritable();
    const previous = this.#tables.get(resource, key);
    if (previous === undefined) return undefined;
    const revision = this.#revision + 1;
    const object = deepFreeze(withMetadata(previous, { resourceVersion: String(revision) }));
    const bytes = this.#sizeOf(previous);
    this.#revision = revision;
    this.#bytes -= bytes;
    this.#tables.delete(resource, key);
    this.#announce({ type: "DELETED", revision, resource, object, previous, bytes }, key, undefined);
    return object;
  }

  /**
   * Calls the listener on each later change of the resource, or of all for "*". Returns how to stop. A listener may
   * write: what it causes is announced after what it is told of, so that all listeners see the same order, and goes to the
   * disk together with it.
   */
  subscribe(resource: string, listener: ChangeListener): () => void {
    return this.#listeners.add(resource, listener);
  }

  /** Whether something can be written at present. */
  get isWritable(): boolean {
    return this.#refusal === undefined;
  }

  /** Resolves when all that was written so far is published. */
  async flushed(): Promise<void> {
    try {
      await this.#disk?.flushed();
    } catch (error) {
      throw this.#refusal ?? unwritable(error);
    }
  }

  #announce(change: Change, key: string, text: string | undefined): void {
    this.#unpublished.push(change);
    if (this.#disk === undefined) this.#publishUpTo(change.revision);
    else this.#disk.write(change.revision, change.resource, key, text);
    this.#unannounced.push(change);
    if (this.#unannounced.length > 1) return;
    for (let next: Change | undefined = change; next !== undefined; next = this.#unannounced[0]) {
      for (const listener of this.#listeners.of(next.resource)) this.#tell(listener, next);
      for (const listener of this.#listeners.of("*")) this.#tell(listener, next);
      this.#unannounced.shift();
    }
  }

  /** A listener's trouble is not that of who wrote, nor of the other listeners. */
  #tell(listener: ChangeListener, change: Change): void {
    try {
      listener(change);
    } catch (error) {
      this.#options.onListenerError(error);
    }
  }

  #publishUpTo(revision: number): void {
    const end = this.#unpublished.findIndex((change) => change.revision > revision);
    const stored = this.#unpublished.splice(0, end < 0 ? this.#unpublished.length : end);
    for (const change of stored) this.published.publish(change);
  }

  /** Nobody was told of what did not reach the disk, so it never was. */
  #turnBack(error: unknown): void {
    this.#refusal = unwritable(error);
    for (const { type, bytes, previous } of this.#unpublished) {
      this.#bytes += type === "DELETED" ? bytes : this.#sizeOf(previous) - bytes;
    }
    this.#unpublished = [];
    this.#tables.become(this.published.tables);
    this.#revision = this.published.revision;
    this.#options.onDisk?.(error);
  }

  /** Throws when the disk has more than was published: what, is only known to who reads it all again. */
  #goOn(revision: number): void {
    if (revision !== this.#revision) {
      throw new Error(
        `The disk holds revision ${revision} after it failed, known is ${this.#revision}; the server must start again`,
      );
    }
    this.#refusal = undefined;
    this.#options.onDisk?.(undefined);
  }

  #requireWritable(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  #sizeOf(object: ApiObject | undefined): number {
    return object === undefined ? 0 : (this.#sizes.get(object) ?? 0);
  }

  #measure(object: ApiObject, bytes: number): void {
    this.#sizes.set(object, bytes);
    this.#bytes += bytes;
  }
}

function unwritable(error: unknown): StatusError {
  const why = error instanceof Error && error.cause !== undefined ? messageOf(error.cause) : messageOf(error);
  return new StatusError(500, "InternalError", `Internal error occurred: nothing can be stored at present: ${why}`);
}

function tooLarge(bytes: number): StatusError {
  const message = `The object is too large to be stored: found ${bytes} bytes, at most ${mostObjectBytes} are possible`;
  return new StatusError(413, "RequestEntityTooLarge", message);
}

function full(): StatusError {
  const message = `All objects together are too large: at most ${mostBytesOfAll} bytes are possible; delete some first`;
  return new StatusError(507, "", message);
}
