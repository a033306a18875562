import { CriError } from "../../../connections/cri/index.ts";
import { messageOf } from "../../../ground/base/index.ts";
import { EngineUnavailable, isAbsent } from "../engine/index.ts";

/** What a caller of CRI gets to know: its code to decide by, and Docker's own words. */
export function failure(operation: string, error: unknown, prefix = ""): unknown {
  if (error instanceof CriError) return error;
  if (error instanceof Error && error.name === "AbortError") return error;
  const code = isAbsent(error) ? "NotFound" : error instanceof EngineUnavailable ? "Unavailable" : "Unknown";
  const message = messageOf(error);
  return new CriError(code, operation, prefix === "" ? message : `${prefix}: ${message}`, error);
}

export function noSuch(operation: string, what: string): CriError {
  return new CriError("NotFound", operation, `${what}: not found`);
}
