import type { Clock } from "../../../ground/base/index.ts";
import {
  isOlder,
  type ObjectKind,
  type ObjectKinds,
  type ObjectSource,
  type Objects,
  objectKey,
  type VolumeObjectRef,
} from "./ports.ts";

/** Strategy Get: asks each time. */
export class DirectObjects implements Objects {
  readonly pollMs: number;
  readonly #source: ObjectSource;

  constructor(source: ObjectSource, options: { readonly pollMs: number }) {
    this.#source = source;
    this.pollMs = options.pollMs;
  }

  read<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    signal: AbortSignal,
  ): Promise<ObjectKinds[Kind] | undefined> {
    return this.#source.get(ref, "latest", signal);
  }

  hold(): void {}
  release(): void {}
  onChange(): void {}
}

/** Strategy Cache: an answer, "there is none" included, is good for a while. */
export class CachedObjects implements Objects {
  readonly pollMs: number;
  readonly #source: ObjectSource;
  readonly #clock: Clock;
  readonly #ttlMs: () => number;
  readonly #entries = new Map<string, Entry>();

  /** `ttlMs`: what the node's annotation says, else a minute. */
  constructor(
    source: ObjectSource,
    options: { readonly clock: Clock; readonly ttlMs: () => number; readonly pollMs: number },
  ) {
    this.#source = source;
    this.#clock = options.clock;
    this.#ttlMs = options.ttlMs;
    this.pollMs = options.pollMs;
  }

  get size(): number {
    return this.#entries.size;
  }

  hold(ref: VolumeObjectRef, holder: string): void {
    const key = objectKey(ref);
    const entry = this.#entries.get(key);
    // A new user gets the present content, not what an earlier one has seen.
    if (entry === undefined) this.#entries.set(key, { holders: new Set([holder]) });
    else if (!entry.holders.has(holder)) {
      entry.holders.add(holder);
      entry.readAt = undefined;
    }
  }

  release(ref: VolumeObjectRef, holder: string): void {
    const entry = this.#entries.get(objectKey(ref));
    entry?.holders.delete(holder);
    if (entry?.holders.size === 0) this.#entries.delete(objectKey(ref));
  }

  onChange(): void {}

  async read<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    signal: AbortSignal,
  ): Promise<ObjectKinds[Kind] | undefined> {
    const entry = this.#entries.get(objectKey(ref));
    if (entry === undefined) return this.#source.get(ref, "latest", signal);
    const now = this.#clock.monotonic();
    if (entry.readAt !== undefined && now - entry.readAt < this.#ttlMs()) {
      return entry.object as ObjectKinds[Kind] | undefined;
    }
    try {
      const object = await this.#source.get(ref, entry.readAt === undefined ? "latest" : "cached", signal);
      // A cache may lag behind; but a server that was set back to an older state has nothing newer.
      entry.object = isOlder(object, entry.object) ? await this.#source.get(ref, "latest", signal) : object;
      entry.readAt = now;
    } catch (error) {
      // Old content is better than none while the API server is away.
      if (signal.aborted || entry.object === undefined) throw error;
    }
    return entry.object as ObjectKinds[Kind] | undefined;
  }
}

interface Entry {
  readonly holders: Set<string>;
  readAt?: number | undefined;
  object?: ObjectKinds[ObjectKind] | undefined;
}
