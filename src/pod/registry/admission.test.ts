import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/pods.ts";
import { Admission, type AdmissionHandler } from "./admission.ts";
import { placementHandler } from "./admission-placement.ts";

const victims = { victims: [], resource: "cpu" };

/** A handler that gives, and what was given or taken back in order. */
function giver() {
  const done: string[] = [];
  const handler = placementHandler({
    give: () => {
      done.push("given");
      return { type: "given", takeBack: () => done.push("taken back") };
    },
  });
  return { done, handler };
}

for (const [what, later, taken] of [
  ["taken", () => ({ type: "admitted" }), ["given"]],
  ["taken, with others to go first", () => ({ type: "admitted", preempts: victims }), ["given"]],
  ["refused", () => ({ type: "rejected", reason: "NodePorts", message: "" }), ["given", "taken back"]],
  ["not decided about", () => ({ type: "undecided", waitsFor: "the Node" }), ["given", "taken back"]],
] as const satisfies readonly (readonly [string, AdmissionHandler, readonly string[]])[]) {
  test(`a pod that is ${what} afterwards`, () => {
    const { done, handler } = giver();
    assert.deepEqual(new Admission({ handler, later }).admit(testPod(), []), later());
    assert.deepEqual(done, taken);
  });
}

test("a handler that fails leaves nothing given", () => {
  const { done, handler } = giver();
  const fails: AdmissionHandler = () => {
    throw new Error("a defect");
  };
  assert.throws(() => new Admission({ handler, fails }).admit(testPod(), []), /a defect/);
  assert.deepEqual(done, ["given", "taken back"]);
});

test("what can't be given is the reason that users see", () => {
  const handler = placementHandler({
    give: () => ({ type: "refused", reason: "TopologyAffinityError", message: "Resources cannot be allocated" }),
  });
  assert.deepEqual(new Admission({ handler }).admit(testPod(), []), {
    type: "rejected",
    reason: "TopologyAffinityError",
    message: "Resources cannot be allocated",
  });
});
