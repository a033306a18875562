import { type GrpcCode, grpcCodeOf, messageOf } from "../base/index.ts";

export type GrpcFailureCode = Exclude<GrpcCode, "OK">;

/** A call that the server refused, failed or never answered. Cancelled calls reject with their signal's reason instead. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly code: GrpcFailureCode;

  /** `message` is what the server says, or the library when no server answered. */
  constructor(code: GrpcFailureCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** Translates what the gRPC library throws; the one place that knows its shape. */
export function toGrpcError(error: unknown): GrpcError {
  if (error instanceof GrpcError) return error;
  const { code, details } = error instanceof Error ? (error as Partial<LibraryError>) : {};
  const known = typeof code === "number" ? grpcCodeOf(code) : undefined;
  if (known === undefined || known === "OK") return new GrpcError("Unknown", messageOf(error), error);
  return new GrpcError(known, typeof details === "string" ? details : messageOf(error), error);
}

interface LibraryError {
  readonly code: unknown;
  readonly details: unknown;
}
