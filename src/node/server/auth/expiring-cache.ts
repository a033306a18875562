import type { Clock } from "../../../ground/base/index.ts";

/** Remembers values for a time each, and not more than so many: the one not used for longest goes first. */
export class ExpiringCache<Value> {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #entries = new Map<string, { readonly value: Value; readonly until: number }>();

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (entry.until <= this.#clock.monotonic()) return undefined;
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** A time of 0 means that nothing is remembered. */
  set(key: string, value: Value, forMs: number): void {
    this.#entries.delete(key);
    if (forMs <= 0) return;
    this.#entries.set(key, { value, until: this.#clock.monotonic() + forMs });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#most) break;
      this.#entries.delete(oldest);
    }
  }
}
