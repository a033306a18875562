/** Nobody has looked for longer than this: a mean over it would be taken for what is now. */
const longestMs = 60_000;

/** Turns counters that only grow into rates per second. */
export class Rates {
  readonly #last = new Map<string, { readonly at: number; readonly count: number }>();

  /** `at` is of the monotonic clock; undefined the first time, after a long pause, and when the counter began anew. */
  of(key: string, at: number, count: number | undefined): number | undefined {
    const before = this.#last.get(key);
    if (count === undefined) {
      this.#last.delete(key);
      return undefined;
    }
    this.#last.set(key, { at, count });
    if (before === undefined || count < before.count || at <= before.at) return undefined;
    if (at - before.at > longestMs) return undefined;
    return ((count - before.count) / (at - before.at)) * 1000;
  }

  forgetAllBut(isKept: (key: string) => boolean): void {
    for (const key of this.#last.keys()) if (!isKept(key)) this.#last.delete(key);
  }
}
