/** What a person reads of an unknown thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The message with those of its causes, outermost first; a cause that is already quoted is not said twice. */
export function explain(error: unknown): string {
  let text = error instanceof AggregateError ? explainAll(error) : messageOf(error);
  const seen = new Set<unknown>([error]);
  let cause = error instanceof Error ? error.cause : undefined;
  while (cause !== undefined && cause !== null && !seen.has(cause)) {
    seen.add(cause);
    const message = cause instanceof AggregateError ? explainAll(cause) : messageOf(cause);
    if (message !== "" && !text.includes(message)) text = text === "" ? message : `${text}: ${message}`;
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return text;
}

function explainAll({ message, errors }: AggregateError): string {
  const parts = errors.map((part: unknown) => explain(part)).filter((part) => !message.includes(part));
  return [message, ...parts].filter((part) => part !== "").join("; ");
}

/** True for the rejection that cancelling work through `signal` causes, in whatever shape it arrives. */
export function isAbort(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || (error instanceof Error && error.name === "AbortError"));
}

/** The code that the system gave an error ("ENOENT"), or undefined. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** True for an error of the system with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  const code = codeOf(error);
  return code !== undefined && codes.includes(code);
}

/**
 * True where the machine, or this process, lacks descriptors or memory for now: nothing was learnt about what was asked,
 * and it is to be asked again.
 */
export function isShortage(error: unknown): boolean {
  return hasCode(error, "EMFILE", "ENFILE", "ENOMEM", "ENOBUFS", "EAGAIN");
}

/** True for the error of a file that isn't there. */
export function isMissing(error: unknown): boolean {
  return hasCode(error, "ENOENT", "ENOTDIR");
}
