/**
 * A patch that can't be applied: malformed in itself, unfit for the object it is meant for, or unmergeable because its
 * parts contradict each other, or too large.
 */
export class PatchError extends Error {
  override readonly name = "PatchError";
  readonly kind: PatchProblem;

  constructor(kind: PatchProblem, message: string) {
    super(message);
    this.kind = kind;
  }
}

export type PatchProblem = "malformed" | "unfit" | "unmergeable" | "too large";
