import assert from "node:assert/strict";
import { test } from "node:test";
import { type CriOperation, deadlineMs, operationTypes } from "./operations.ts";

const T = 120_000;

for (const { operation, request, want } of [
  { operation: "runPodSandbox", request: {}, want: 2 * T },
  { operation: "stopContainer", request: { timeout: 30n }, want: T + 30_000 },
  { operation: "stopContainer", request: { timeout: 0n }, want: T },
  { operation: "stopContainer", request: { timeout: -5n }, want: T },
  { operation: "stopContainer", request: { timeout: 2n ** 62n }, want: 2 ** 31 - 1 },
  { operation: "execSync", request: { timeout: 7n }, want: T + 7_000 },
  { operation: "execSync", request: { timeout: 0n }, want: undefined },
  { operation: "pullImage", request: {}, want: undefined },
  { operation: "getContainerEvents", request: {}, want: undefined },
  { operation: "checkpointContainer", request: { timeout: 0n }, want: T },
  { operation: "checkpointContainer", request: { timeout: 300n }, want: 300_000 },
  { operation: "version", request: {}, want: T },
  { operation: "listContainers", request: {}, want: T },
  { operation: "removePodSandbox", request: {}, want: T },
  { operation: "imageStatus", request: {}, want: T },
] as const) {
  test(`${operation} ${Object.values(request).join()} may take ${want} ms`, () => {
    assert.equal(deadlineMs(operation, request, T), want);
  });
}

test("metrics name each operation once, in snake case", () => {
  const names = Object.values(operationTypes);
  assert.equal(new Set(names).size, names.length);
  assert.ok(names.every((name) => /^[a-z]+(_[a-z]+)*$/.test(name)));
  const sandboxOperations: CriOperation[] = ["runPodSandbox", "updatePodSandboxResources", "updateContainerResources"];
  assert.deepEqual(
    sandboxOperations.map((operation) => operationTypes[operation]),
    ["run_podsandbox", "update_podsandbox_resources", "update_container"],
  );
});
