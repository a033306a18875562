import assert from "node:assert/strict";
import { test } from "node:test";
import { type ShutdownPlanAnswer, shutdownText } from "./shutdown-text.ts";

const pod = { namespace: "default", name: "web", priority: 0, graceSeconds: 20, ownGraceSeconds: 60, isCutShort: true };
const plan: ShutdownPlanAnswer = {
  isUnderWay: false,
  totalSeconds: 30,
  allowedSeconds: 40,
  buckets: [
    {
      priority: 0,
      seconds: 20,
      pods: [pod, { ...pod, name: "job-1", graceSeconds: 5, ownGraceSeconds: 5, isCutShort: false }],
    },
    { priority: 2_000_000_000, seconds: 10, pods: [] },
  ],
};

test("the plan says who ends when, and who is cut short", () => {
  assert.equal(
    shutdownText(plan),
    `Pods have 30 s in all; logind waits for up to 40 s.
priority 0 and up: 20 s
  default/web    priority 0, 20 s instead of 60 s
  default/job-1  priority 0, 5 s
priority 2000000000 and up: 10 s; no pods, so it takes no time
2 pods, of which 1 would get less time than asked for.
As of now: pods that come or go until then change the plan.
`,
  );
});

for (const [name, answer, begin] of [
  ["not configured", undefined, /^Pods would be cut off: neither shutdownGracePeriod nor/],
  [
    "no lock",
    { ...plan, allowedSeconds: undefined, problem: "there is no system bus at /run/dbus" },
    /^Pods would be cut off: there is no system bus at \/run\/dbus\.\n.*30 s in all/,
  ],
  ["too short a lock", { ...plan, allowedSeconds: 5 }, /waits for up to 5 s; what has not ended by then is cut off\./],
  ["under way", { ...plan, isUnderWay: true }, /^The machine is being turned off right now/],
  ["no pods", { ...plan, buckets: [] }, /No pod runs here\./],
] as const) {
  test(`the plan where there is ${name}`, () => {
    assert.match(shutdownText(answer as ShutdownPlanAnswer | undefined), begin);
  });
}
