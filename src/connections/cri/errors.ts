import { type GrpcFailureCode, toGrpcError } from "../../ground/grpc/index.ts";

/** InvalidResponse: the call succeeded, but its response lacks what CRI requires of it. */
export type CriCode = GrpcFailureCode | "InvalidResponse";

/** A call the runtime refused, failed or never answered. Cancelled calls reject with their signal's reason instead. */
export class CriError extends Error {
  override readonly name = "CriError";
  readonly code: CriCode;
  /** The method, as in RuntimeService: `runPodSandbox`. */
  readonly operation: string;

  /** `message` is the runtime's own words, without any prefix. */
  constructor(code: CriCode, operation: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.operation = operation;
  }

  /** The text Kubernetes users know from events and statuses. */
  get rpcText(): string {
    return this.code === "InvalidResponse" ? this.message : `rpc error: code = ${this.code} desc = ${this.message}`;
  }
}

/** The code of an error a runtime gave, or undefined for any other error. */
export function criCodeOf(error: unknown): CriCode | undefined {
  return error instanceof CriError ? error.code : undefined;
}

export function toCriError(operation: string, error: unknown): CriError {
  if (error instanceof CriError) return error;
  const { code, message, cause } = toGrpcError(error);
  return new CriError(code, operation, readable(message), cause);
}

/** The runtime's words as they are; only what the gRPC library itself says is put into plain ones. */
function readable(details: string): string {
  if (details === "") return "the runtime gave no reason";
  const unreachable = /^No connection established\. Last error: (?:Error: )?(.*?)\. Resolution note:/s.exec(
    details,
  )?.[1];
  return unreachable === undefined ? details : `cannot reach the container runtime: ${unreachable}`;
}
