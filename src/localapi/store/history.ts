import type { ApiObject } from "../object.ts";

export type Change =
  | {
      readonly type: "ADDED";
      readonly revision: number;
      readonly resource: string;
      readonly object: ApiObject;
      readonly previous?: undefined;
    }
  | {
      readonly type: "MODIFIED" | "DELETED";
      readonly revision: number;
      readonly resource: string;
      readonly object: ApiObject;
      readonly previous: ApiObject;
    };

/** The latest changes, at most about `capacity`; older ones are forgotten. */
export class History {
  readonly #capacity: number;
  #changes: Change[] = [];
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
    // Cutting a quarter at a time keeps the cost per change constant.
    if (this.#changes.length <= this.#capacity * 1.25) return;
    const oldestKept = this.#changes.at(-this.#capacity);
    if (oldestKept !== undefined) this.compact(oldestKept.revision - 1);
  }

  compact(revision: number): void {
    this.#changes = this.#changes.slice(this.#indexAfter(revision));
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
