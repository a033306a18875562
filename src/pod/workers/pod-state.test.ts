import assert from "node:assert/strict";
import { test } from "node:test";
import { nextState, type PodState, type PodStateEvent } from "./pod-state.ts";

const running: PodState = { step: "running" };
const terminating: PodState = { step: "terminating", cause: "completed", graceSeconds: 30 };
const terminated: PodState = { step: "terminated", cause: "completed" };
const finished: PodState = { step: "finished", cause: "completed" };
const end = (graceSeconds: number, cause: "deleted" | "completed" | "evicted" = "deleted"): PodStateEvent => ({
  type: "terminate",
  cause,
  graceSeconds,
});

for (const [name, state, event, wanted] of [
  ["running ends", running, end(30), { step: "terminating", cause: "deleted", graceSeconds: 30 }],
  ["grace is at least a second", running, end(0), { step: "terminating", cause: "deleted", graceSeconds: 1 }],
  ["running ignores the rest", running, { type: "containersGone" }, running],
  ["grace may shrink", terminating, end(5), { step: "terminating", cause: "deleted", graceSeconds: 5 }],
  ["grace never grows", terminating, end(60), { step: "terminating", cause: "deleted", graceSeconds: 30 }],
  [
    "a weaker cause does not replace a stronger",
    { ...terminating, cause: "deleted" },
    end(30, "completed"),
    { ...terminating, cause: "deleted" },
  ],
  ["containers gone", terminating, { type: "containersGone" }, terminated],
  ["released too early is nothing", terminating, { type: "released" }, terminating],
  ["released", terminated, { type: "released" }, finished],
  ["deleted after the end", finished, end(30), { step: "finished", cause: "deleted" }],
  ["deleted while being released", terminated, end(30), { step: "terminated", cause: "deleted" }],
  ["no way back", finished, { type: "containersGone" }, finished],
] as const) {
  test(name, () => assert.deepEqual(nextState(state, event), wanted));
}
