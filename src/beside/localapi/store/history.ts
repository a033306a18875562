import type { ApiObject } from "../object.ts";

interface AnyChange {
  readonly revision: number;
  readonly resource: string;
  readonly object: ApiObject;
  /** About how much memory it holds. */
  readonly bytes: number;
}

export type Change =
  | (AnyChange & { readonly type: "ADDED"; readonly previous?: undefined })
  | (AnyChange & { readonly type: "MODIFIED" | "DELETED"; readonly previous: ApiObject });

/** A thousand changes of a status are 5 MB; a few large objects that change often must not fill the memory. */
const mostBytes = 64 * 1024 * 1024;

/** The latest changes, at most about `capacity`; older ones are forgotten. */
export class History {
  readonly #capacity: number;
  #changes: Change[] = [];
  #bytes = 0;
  #compactedRevision: number;

  constructor(capacity: number, startRevision: number) {
    this.#capacity = capacity;
    this.#compactedRevision = startRevision;
  }

  get compactedRevision(): number {
    return this.#compactedRevision;
  }

  add(change: Change): void {
    this.#changes.push(change);
    this.#bytes += change.bytes;
    // Cutting a quarter at a time keeps the cost per change constant.
    const cut = this.#bytes > mostBytes ? this.#changes.length >> 2 : this.#changes.length - this.#capacity;
    if (this.#bytes <= mostBytes && cut <= this.#capacity / 4) return;
    const oldestKept = this.#changes[Math.max(cut, 1)] ?? change;
    this.compact(oldestKept.revision - 1);
  }

  compact(revision: number): void {
    this.#changes = this.#changes.slice(this.#indexAfter(revision));
    this.#bytes = this.#changes.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#compactedRevision = Math.max(this.#compactedRevision, revision);
  }

  oldestFirstAfter(revision: number, resource: string): readonly Change[] {
    return this.#changes.slice(this.#indexAfter(revision)).filter((change) => change.resource === resource);
  }

  newestFirstAfter(revision: number, resource: string): readonly Change[] {
    return this.oldestFirstAfter(revision, resource).toReversed();
  }

  /** Index of the first change later than the revision; revisions grow without gaps but may start anywhere. */
  #indexAfter(revision: number): number {
    const first = this.#changes[0];
    if (first === undefined) return 0;
    return Math.min(Math.max(revision - first.revision + 1, 0), this.#changes.length);
  }
}
