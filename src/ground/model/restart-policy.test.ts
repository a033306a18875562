import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { exited, testContainer, testObserved, testPod } from "../../../test/support/pods.ts";
import type { Container } from "./kube/gen/types.ts";
import { mayRestart, restarts, restartsAfter, ruleFor } from "./restart-policy.ts";

const rule = (operator: string, values: readonly number[], action = "Restart") => ({
  action,
  exitCodes: { operator, values },
});
const container = (restartPolicy?: string, ...restartPolicyRules: NonNullable<Container["restartPolicyRules"]>) =>
  testContainer("main", { ...(restartPolicy === undefined ? {} : { restartPolicy }), restartPolicyRules });

describe("whether a container that ended starts again", () => {
  for (const { what, pod, own, codes } of [
    { what: "the pod's policy, Always", pod: "Always", own: container(), codes: { 0: true, 1: true } },
    { what: "the pod's policy, OnFailure", pod: "OnFailure", own: container(), codes: { 0: false, 1: true } },
    { what: "the pod's policy, Never", pod: "Never", own: container(), codes: { 0: false, 1: false } },
    { what: "its own policy counts before its pod's", pod: "Always", own: container("Never"), codes: { 0: false } },
    { what: "its own, OnFailure", pod: "Never", own: container("OnFailure"), codes: { 0: false, 7: true } },
    { what: "its own, Always", pod: "Never", own: container("Always"), codes: { 0: true, 7: true } },
    {
      what: "a rule for some codes",
      pod: "Always",
      own: container("Never", rule("In", [42, 43])),
      codes: { 0: false, 41: false, 42: true, 43: true },
    },
    {
      what: "a rule for all but some codes",
      pod: "Never",
      own: container("Never", rule("NotIn", [0, 1])),
      codes: { 0: false, 1: false, 2: true, 255: true },
    },
    {
      what: "none of several rules names the code: the container's policy",
      pod: "Never",
      own: container("OnFailure", rule("In", [3]), rule("In", [4])),
      codes: { 0: false, 4: true, 5: true },
    },
    {
      what: "rules without a policy of its own count for nothing",
      pod: "Never",
      own: container(undefined, rule("In", [42])),
      codes: { 42: false },
    },
    {
      what: "an operator or action that nobody knows is left out",
      pod: "Never",
      own: container("Never", rule("Gt", [1]), rule("In", [5], "Explode")),
      codes: { 2: false, 5: false },
    },
  ]) {
    test(what, () => {
      const subject = testPod({ restartPolicy: pod, containers: [own] });
      const found = Object.fromEntries(
        Object.keys(codes).map((code) => [code, restartsAfter(subject, own, Number(code))]),
      );
      assert.deepEqual(found, codes);
    });
  }
});

test("the first rule for a code decides what restarts", () => {
  const own = container("Never", rule("In", [1]), rule("NotIn", [0], "RestartAllContainers"));
  assert.deepEqual(
    [0, 1, 2].map((code) => ruleFor(own, code)),
    [undefined, "Restart", "RestartAllContainers"],
  );
});

test("a container may restart by its policy, or by any rule", () => {
  const pod = testPod({ restartPolicy: "Never" });
  assert.equal(mayRestart(pod, container()), false);
  assert.equal(mayRestart(pod, container("OnFailure")), true);
  assert.equal(mayRestart(pod, container("Never")), false);
  assert.equal(mayRestart(pod, container("Never", rule("In", [9]))), true);
});

test("what has no record, or one that tells no exit code, starts; ephemeral containers start once", () => {
  const own = container("Never");
  const pod = testPod({ restartPolicy: "Never", containers: [own] });
  const regular = { kind: "regular", container: own } as const;
  assert.equal(restarts(pod, regular, undefined), true);
  assert.equal(restarts(pod, regular, testObserved("main", { state: "created" })), true);
  assert.equal(restarts(pod, regular, testObserved("main", { state: "unknown" })), true);
  assert.equal(restarts(pod, { kind: "sidecar", container: own }, exited("main", 0)), true);
  assert.equal(restarts(pod, { kind: "ephemeral", container: own }, exited("main", 1)), false);
  assert.equal(restarts(pod, { kind: "ephemeral", container: own }, undefined), true);
});
