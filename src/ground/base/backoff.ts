/**
 * Exponential back-off per key: the first failure waits `initialMs`, each further one twice as long up to `maxMs`.
 * A key that has been quiet for `forgetMs` starts over.
 */
export class Backoff<Key> {
  readonly #entries = new Map<Key, { delayMs: number; updatedAt: number }>();
  readonly #settings: BackoffSettings;

  constructor(settings: BackoffSettings) {
    this.#settings = settings;
  }

  /** The present delay of the key; 0 when it has none. */
  get(key: Key): number {
    return this.#entries.get(key)?.delayMs ?? 0;
  }

  /** True while `now` is closer than the present delay to `since`, and the entry has not been forgotten. */
  isWaiting(key: Key, since: number, now: number): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined || since - entry.updatedAt > this.#settings.forgetMs) return false;
    return now - since < entry.delayMs;
  }

  /** Lengthens the delay of the key after a failure that ended at `since`. */
  advance(key: Key, since: number, now: number): number {
    const entry = this.#entries.get(key);
    const { initialMs, maxMs, forgetMs } = this.#settings;
    const fresh = entry === undefined || since - entry.updatedAt > forgetMs;
    const delayMs = fresh ? Math.min(initialMs, maxMs) : Math.min(entry.delayMs * 2, maxMs);
    this.#entries.set(key, { delayMs, updatedAt: now });
    return delayMs;
  }

  /** Restores an entry that was kept on disk. */
  restore(key: Key, delayMs: number, updatedAt: number): void {
    this.#entries.set(key, { delayMs, updatedAt });
  }

  entries(): IterableIterator<[Key, { readonly delayMs: number; readonly updatedAt: number }]> {
    return this.#entries.entries();
  }

  forget(key: Key): void {
    this.#entries.delete(key);
  }

  /** Drops entries that have been quiet for the forget time; call now and then to bound memory. */
  prune(now: number): void {
    for (const [key, entry] of this.#entries) {
      if (now - entry.updatedAt > this.#settings.forgetMs) this.#entries.delete(key);
    }
  }
}

export interface BackoffSettings {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly forgetMs: number;
}
