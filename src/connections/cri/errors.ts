import { messageOf } from "../../ground/base/index.ts";

/** gRPC's status codes by number; the names are how Go prints them, because that text reaches users. */
const codesByNumber = {
  1: "Canceled",
  2: "Unknown",
  3: "InvalidArgument",
  4: "DeadlineExceeded",
  5: "NotFound",
  6: "AlreadyExists",
  7: "PermissionDenied",
  8: "ResourceExhausted",
  9: "FailedPrecondition",
  10: "Aborted",
  11: "OutOfRange",
  12: "Unimplemented",
  13: "Internal",
  14: "Unavailable",
  15: "DataLoss",
  16: "Unauthenticated",
} as const;

export type GrpcCode = (typeof codesByNumber)[keyof typeof codesByNumber];
/** InvalidResponse: the call succeeded, but its response lacks what CRI requires of it. */
export type CriCode = GrpcCode | "InvalidResponse";

const numbersByCode = new Map<string, number>(
  Object.entries(codesByNumber).map(([number, code]) => [code, Number(number)]),
);

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

/** Translates what the gRPC library throws; the one place that knows its shape. */
export function toCriError(operation: string, error: unknown): CriError {
  if (error instanceof CriError) return error;
  const { code, details } = error instanceof Error ? (error as Partial<GrpcFailure>) : {};
  const known = typeof code === "number" ? codesByNumber[code as keyof typeof codesByNumber] : undefined;
  const message = known === undefined || typeof details !== "string" ? messageOf(error) : readable(details);
  return new CriError(known ?? "Unknown", operation, message, error);
}

/** The runtime's words as they are; only what the gRPC library itself says is put into plain ones. */
function readable(details: string): string {
  if (details === "") return "the runtime gave no reason";
  const unreachable = /^No connection established\. Last error: (?:Error: )?(.*?)\. Resolution note:/s.exec(
    details,
  )?.[1];
  return unreachable === undefined ? details : `cannot reach the container runtime: ${unreachable}`;
}

/** The gRPC status number a server answers with. */
export function grpcStatusOf(code: CriCode): number {
  return numbersByCode.get(code) ?? 2;
}

interface GrpcFailure {
  readonly code: unknown;
  readonly details: unknown;
}
