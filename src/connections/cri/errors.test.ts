import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { grpcNumberOf } from "../../ground/base/index.ts";
import { CriError, criCodeOf, toCriError } from "./errors.ts";

const goNames = {
  CANCELLED: "Canceled",
  UNKNOWN: "Unknown",
  INVALID_ARGUMENT: "InvalidArgument",
  DEADLINE_EXCEEDED: "DeadlineExceeded",
  NOT_FOUND: "NotFound",
  ALREADY_EXISTS: "AlreadyExists",
  PERMISSION_DENIED: "PermissionDenied",
  RESOURCE_EXHAUSTED: "ResourceExhausted",
  FAILED_PRECONDITION: "FailedPrecondition",
  ABORTED: "Aborted",
  OUT_OF_RANGE: "OutOfRange",
  UNIMPLEMENTED: "Unimplemented",
  INTERNAL: "Internal",
  UNAVAILABLE: "Unavailable",
  DATA_LOSS: "DataLoss",
  UNAUTHENTICATED: "Unauthenticated",
} as const satisfies Record<Exclude<keyof typeof status, "OK">, string>;

for (const [name, code] of Object.entries(goNames)) {
  const number = status[name as keyof typeof goNames];
  test(`gRPC status ${name} is ${code}, and back`, () => {
    const cause = Object.assign(new Error(`${number} ${name}: no such thing`), {
      code: number,
      details: "no such thing",
    });
    const error = toCriError("stopContainer", cause);
    assert.deepEqual(
      { code: error.code, operation: error.operation, message: error.message, cause: error.cause },
      { code, operation: "stopContainer", message: "no such thing", cause },
    );
    assert.equal(error.rpcText, `rpc error: code = ${code} desc = no such thing`);
    assert.equal(grpcNumberOf(code), number);
  });
}

test("what is no gRPC error becomes Unknown and keeps its message", () => {
  assert.equal(toCriError("version", new TypeError("boom")).code, "Unknown");
  assert.equal(toCriError("version", new TypeError("boom")).message, "boom");
  assert.equal(toCriError("version", "text").message, "text");
  assert.equal(toCriError("version", undefined).code, "Unknown");
});

test("an error already translated stays itself", () => {
  const error = new CriError("NotFound", "execSync", "gone");
  assert.equal(toCriError("other", error), error);
});

test("an invalid response carries no gRPC prefix", () => {
  const error = new CriError("InvalidResponse", "version", "not all fields are set");
  assert.equal(error.rpcText, "not all fields are set");
});

test("only errors of the runtime have a code", () => {
  assert.equal(criCodeOf(new CriError("Aborted", "exec", "")), "Aborted");
  assert.equal(criCodeOf(Object.assign(new Error("x"), { code: 5 })), undefined);
  assert.equal(criCodeOf(undefined), undefined);
});

test("what the gRPC library says of a missing connection is put plainly, and silence is named", () => {
  const failure = (details: string) => Object.assign(new Error(details), { code: status.UNAVAILABLE, details });
  const library = "No connection established. Last error: Error: connect ENOENT /run/x.sock. Resolution note: ";
  assert.equal(
    toCriError("version", failure(library)).message,
    "cannot reach the container runtime: connect ENOENT /run/x.sock",
  );
  assert.equal(toCriError("version", failure("")).message, "the runtime gave no reason");
});
