import assert from "node:assert/strict";
import { test } from "node:test";
import { beforeShutdown, endedByShutdown, takenOffStatus } from "./disruption.ts";
import type { PodStatus } from "./kube/gen/types.ts";

const running: PodStatus = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };

test("a static pod goes on from before the shutdown, also when it ended well and so has no reason", () => {
  const failed = endedByShutdown(running, 0);
  assert.deepEqual(beforeShutdown(failed), running);
  const { reason: _reason, message: _message, ...rest } = failed;
  assert.deepEqual(beforeShutdown({ ...rest, phase: "Succeeded" }), running);
});

test("what ended for another reason stays as it is", () => {
  assert.equal(beforeShutdown(running), undefined);
  assert.equal(beforeShutdown({ phase: "Succeeded" }), undefined);
  const evicted = takenOffStatus(running, { reason: "Evicted", message: "m", disruption: "m" }, 0);
  assert.equal(beforeShutdown(evicted), undefined);
});
