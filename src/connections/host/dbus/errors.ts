/** The peer's answer to a call was an error. */
export class BusCallError extends Error {
  override readonly name = "BusCallError";
  /** Such as org.freedesktop.systemd1.UnitExists. */
  readonly errorName: string;

  constructor(member: string, errorName: string, text: string) {
    super(`${member} was refused: ${text === "" ? errorName : text} (${errorName})`);
    this.errorName = errorName;
  }
}

/** There was no answer: the bus cannot be reached, has gone away, talks rubbish or takes too long. */
export class BusLostError extends Error {
  override readonly name = "BusLostError";
}
