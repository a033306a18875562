import { shownValue } from "../views/redacted.ts";

/** One thing that viewers are shown, by its kind and name; `undefined` means that it is gone. */
export interface LiveItem {
  readonly sequence: number;
  readonly key: string;
  readonly json: string;
}

const mostGoneKept = 1_000;

/**
 * The present truth about everything that is shown, each with the number of its last change. A viewer is a number: what
 * it has not seen is what has a higher one. So a slow viewer misses what was true in between and costs nothing, and one
 * that comes back is told what has changed since, not what happened.
 */
export class LiveState {
  /** In the order of their last change. */
  readonly #items = new Map<string, LiveItem>();
  #gone = 0;
  /** Of what is gone, older news than this are forgotten: who has not heard them must begin anew. */
  #forgotten = 0;
  #sequence = 0;

  get sequence(): number {
    return this.#sequence;
  }

  /** Returns whether there is something new to tell. */
  set(key: string, value: unknown): boolean {
    const json = JSON.stringify(value, shownValue) ?? "null";
    const before = this.#items.get(key);
    if (before?.json === json) return false;
    if (before !== undefined) this.#drop(before);
    if (json === "null") this.#gone++;
    this.#items.set(key, { sequence: ++this.#sequence, key, json });
    this.#forgetGone();
    return true;
  }

  /** It is not there any more. */
  remove(key: string): boolean {
    return this.#items.has(key) && this.set(key, null);
  }

  /** What has changed since, in that order; undefined: too much was forgotten meanwhile, so begin anew. */
  since(sequence: number): Iterable<LiveItem> | undefined {
    if (sequence > this.#sequence || (sequence > 0 && sequence < this.#forgotten)) return undefined;
    return this.#after(sequence);
  }

  *#after(sequence: number): Iterable<LiveItem> {
    // Who begins has nothing that could be gone.
    const isNew = sequence === 0;
    for (const item of this.#items.values())
      if (item.sequence > sequence && !(isNew && item.json === "null")) yield item;
  }

  #drop({ key, json }: LiveItem): void {
    if (json === "null") this.#gone--;
    this.#items.delete(key);
  }

  #forgetGone(): void {
    if (this.#gone <= mostGoneKept) return;
    for (const item of this.#items.values()) {
      if (item.json !== "null") continue;
      this.#drop(item);
      this.#forgotten = item.sequence;
      return;
    }
  }
}
