import assert from "node:assert/strict";
import { test } from "node:test";
import { isReady, isStarted } from "./flags.ts";

const running = { state: "running", exitCode: 0 } as const;
const created = { state: "created", exitCode: 0 } as const;
const done = { state: "exited", exitCode: 0 } as const;
const failed = { state: "exited", exitCode: 1 } as const;

for (const [kind, seen, startup, readiness, started, ready] of [
  ["regular", undefined, undefined, undefined, false, false],
  ["regular", created, undefined, undefined, false, false],
  ["regular", done, "success", "success", false, false],
  ["regular", running, undefined, undefined, true, true],
  ["regular", running, undefined, "success", true, true],
  ["regular", running, undefined, "failure", true, false],
  ["regular", running, undefined, "unknown", true, false],
  ["regular", running, "unknown", undefined, false, false],
  ["regular", running, "failure", "success", false, false],
  ["regular", running, "success", "success", true, true],
  ["regular", running, "success", "failure", true, false],
  ["sidecar", running, "unknown", undefined, false, false],
  ["sidecar", running, "success", undefined, true, true],
  ["init", undefined, undefined, undefined, false, false],
  ["init", running, undefined, undefined, true, false],
  ["init", done, undefined, undefined, false, true],
  ["init", failed, undefined, undefined, false, false],
  ["ephemeral", running, undefined, undefined, undefined, false],
] as const) {
  const state = seen === undefined ? "absent" : `${seen.state} ${seen.exitCode}`;
  test(`${kind} ${state}, startup ${startup}, readiness ${readiness}: started ${started}, ready ${ready}`, () => {
    assert.equal(isStarted(kind, seen, startup), started);
    assert.equal(isReady(kind, seen, startup, readiness), ready);
  });
}
