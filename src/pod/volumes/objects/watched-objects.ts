import { type Clock, type Timer, waitFor } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import {
  type ObjectKind,
  type ObjectKinds,
  ObjectReadError,
  type ObjectSource,
  type Objects,
  objectKey,
  type VolumeObjectRef,
} from "./ports.ts";

const firstAnswerMs = 1_000;

/**
 * Strategy Watch: one watch per object in use, however many pods use it. A watch that only served a read (for a
 * variable, say) ends when nobody has asked for a while.
 */
export class WatchedObjects implements Objects {
  readonly pollMs = undefined;
  readonly #source: ObjectSource;
  readonly #clock: Clock;
  readonly #idleMs: number;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(ref: VolumeObjectRef) => void>();

  constructor(source: ObjectSource, options: { readonly clock: Clock; readonly idleMs: number }) {
    this.#source = source;
    this.#clock = options.clock;
    this.#idleMs = options.idleMs;
  }

  /** Watches running now. */
  get watches(): number {
    let count = 0;
    for (const { watch } of this.#entries.values()) if (watch !== undefined) count++;
    return count;
  }

  /** Objects remembered now. */
  get size(): number {
    return this.#entries.size;
  }

  onChange(listener: (ref: VolumeObjectRef) => void): void {
    this.#listeners.add(listener);
  }

  hold(ref: VolumeObjectRef, holder: string, pod: PodUid): void {
    const entry = this.#entry(ref, pod);
    entry.holders.add(holder);
    entry.idle?.cancel();
    entry.idle = undefined;
  }

  release(ref: VolumeObjectRef, holder: string): void {
    const entry = this.#entries.get(objectKey(ref));
    if (entry === undefined) return;
    entry.holders.delete(holder);
    // What was held has been read by its holder; nobody else waits for it.
    if (entry.holders.size === 0) this.#end(entry);
  }

  async read<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    signal: AbortSignal,
  ): Promise<ObjectKinds[Kind] | undefined> {
    // Whoever reads waits for the answer before it reads the next: there is no crowd of them to keep apart.
    const entry = this.#entry(ref, ref.namespace);
    try {
      if (!entry.answered) await this.#firstAnswer(entry, signal);
    } finally {
      if (entry.holders.size === 0) this.#endWhenIdle(entry);
    }
    const { object } = entry;
    if (object?.immutable === true) {
      // It never changes again: what we have is all there will be, and the API server is spared a watch.
      entry.watch?.[Symbol.dispose]();
      entry.watch = undefined;
    }
    return object as ObjectKinds[Kind] | undefined;
  }

  #entry(ref: VolumeObjectRef, who: string): Entry {
    const key = objectKey(ref);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry: Entry = { ref, holders: new Set(), waiting: new Set(), answered: false };
    this.#entries.set(key, entry);
    entry.watch = this.#source.watch(ref, (object) => this.#told(entry, object), who);
    return entry;
  }

  #told(entry: Entry, object: ObjectKinds[ObjectKind] | undefined): void {
    if (this.#entries.get(objectKey(entry.ref)) !== entry) return;
    const isFirst = !entry.answered;
    entry.object = object;
    entry.answered = true;
    for (const resolve of entry.waiting) resolve();
    if (isFirst) return;
    for (const listener of this.#listeners) listener(entry.ref);
  }

  async #firstAnswer(entry: Entry, signal: AbortSignal): Promise<void> {
    await waitFor(signal, (done, fail) => {
      const message = `failed to sync ${entry.ref.kind} cache: timed out waiting for the condition`;
      const timer = this.#clock.after(firstAnswerMs, () => fail(new ObjectReadError(message)));
      entry.waiting.add(done);
      if (entry.answered) done();
      return () => {
        timer.cancel();
        entry.waiting.delete(done);
      };
    });
  }

  #endWhenIdle(entry: Entry): void {
    entry.idle?.cancel();
    entry.idle = this.#clock.after(this.#idleMs, () => this.#end(entry));
  }

  #end(entry: Entry): void {
    entry.idle?.cancel();
    entry.watch?.[Symbol.dispose]();
    entry.watch = undefined;
    this.#entries.delete(objectKey(entry.ref));
  }
}

interface Entry {
  readonly ref: VolumeObjectRef;
  readonly holders: Set<string>;
  readonly waiting: Set<() => void>;
  watch?: Disposable | undefined;
  object?: ObjectKinds[ObjectKind] | undefined;
  answered: boolean;
  idle?: Timer | undefined;
}
