/** A patch that is malformed or does not fit the object it is meant for. */
export class PatchError extends Error {
  override readonly name = "PatchError";
  readonly kind: "malformed" | "unfit";

  constructor(kind: "malformed" | "unfit", message: string) {
    super(message);
    this.kind = kind;
  }
}
