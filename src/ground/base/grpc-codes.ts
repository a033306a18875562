/** gRPC's status codes in the order of their numbers, named as Go prints them, because that text reaches users. */
const codes = [
  ...(["OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists"] as const),
  ...(["PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange"] as const),
  ...(["Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated"] as const),
];

export type GrpcCode = (typeof codes)[number];

/** Undefined for a number that is no code. */
export function grpcCodeOf(number: number): GrpcCode | undefined {
  return codes[number];
}

export function grpcNumberOf(code: GrpcCode): number {
  return codes.indexOf(code);
}
