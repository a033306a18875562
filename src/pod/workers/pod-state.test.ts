import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/pods.ts";
import type { PodStatus } from "../../ground/model/index.ts";
import {
  type Finished,
  killDeadlineOf,
  newlyOrphaned,
  nextState,
  type PodState,
  type PodStateEvent,
  newlyRunning as running,
  type Terminated,
  type Terminating,
  type TerminationCause,
} from "./pod-state.ts";

const amend = (status: PodStatus): PodStatus => status;
const otherAmend = (status: PodStatus): PodStatus => status;
const timer = { cancel: (): void => {} };
const waiter = (): void => {};
const pod = testPod({});

const terminating: Terminating = {
  step: "terminating",
  cause: "completed",
  graceSeconds: 30,
  returning: undefined,
  amendStatus: undefined,
  isPastDeadline: false,
  killDeadline: undefined,
  whenStopped: [],
};
const terminated: Terminated = {
  step: "terminated",
  cause: "completed",
  returning: undefined,
  amendStatus: undefined,
  isPastDeadline: false,
};
const finished: Finished = { step: "finished", cause: "completed", returning: undefined, isCleared: false };

const end = (graceSeconds: number, cause: TerminationCause = "deleted", now = 0): PodStateEvent => ({
  type: "terminate",
  cause,
  graceSeconds,
  now,
});
const ended = (isPastDeadline: boolean): PodStateEvent => ({
  type: "ended",
  cause: "evicted",
  graceSeconds: 10,
  now: 0,
  isPastDeadline,
  amendStatus: amend,
});
const stopping = (now: number): PodStateEvent => ({ type: "stopping", now });
const returned: PodStateEvent = { type: "returned", pod };

const changes: readonly (readonly [name: string, state: PodState, event: PodStateEvent, wanted: PodState])[] = [
  ["running: its directories and volumes are there", running, { type: "prepared" }, { ...running, isPrepared: true }],
  [
    "running: what is left was stopped",
    running,
    { type: "remainsStopped", remains: "c1 exited" },
    { ...running, stoppedRemains: "c1 exited" },
  ],
  ["running: it has a deadline", running, { type: "deadlineSet", timer }, { ...running, deadlineTimer: timer }],
  [
    "running ends, and nothing of running stays",
    { ...running, isPrepared: true, deadlineTimer: timer },
    end(30),
    { ...terminating, cause: "deleted" },
  ],
  [
    "running is evicted, which its status has to say",
    running,
    { type: "terminate", cause: "evicted", graceSeconds: 5, now: 0, amendStatus: amend },
    { ...terminating, cause: "evicted", graceSeconds: 5, amendStatus: amend },
  ],
  ["grace is at least a second", running, end(0), { ...terminating, cause: "deleted", graceSeconds: 1 }],
  [
    "running was active for too long",
    running,
    ended(true),
    { ...terminating, cause: "evicted", graceSeconds: 10, amendStatus: amend, isPastDeadline: true },
  ],
  [
    "running came to its end",
    running,
    { type: "ended", cause: "completed", graceSeconds: 30, now: 0, isPastDeadline: false },
    terminating,
  ],

  ["terminating: grace may shrink", terminating, end(5), { ...terminating, cause: "deleted", graceSeconds: 5 }],
  ["terminating: grace never grows", terminating, end(60), { ...terminating, cause: "deleted" }],
  [
    "terminating: a weaker cause does not replace a stronger",
    { ...terminating, cause: "deleted" },
    end(30, "completed"),
    { ...terminating, cause: "deleted" },
  ],
  [
    "terminating: the newest words of the node count",
    { ...terminating, amendStatus: amend },
    { type: "terminate", cause: "evicted", graceSeconds: 30, now: 0, amendStatus: otherAmend },
    { ...terminating, cause: "evicted", amendStatus: otherAmend },
  ],
  [
    "terminating: who has nothing to say leaves the words of the one before",
    { ...terminating, amendStatus: amend },
    end(30),
    { ...terminating, cause: "deleted", amendStatus: amend },
  ],
  [
    "terminating: its deadline passes while somebody ends it, and it still comes back",
    { ...terminating, cause: "deleted", returning: pod },
    ended(true),
    { ...terminating, cause: "deleted", returning: pod, graceSeconds: 10, amendStatus: amend, isPastDeadline: true },
  ],
  [
    "terminating: past its deadline is past its deadline",
    { ...terminating, isPastDeadline: true },
    end(30),
    { ...terminating, cause: "deleted", isPastDeadline: true },
  ],
  [
    "terminating: the grace begins with the stopping",
    terminating,
    stopping(1_000),
    { ...terminating, killDeadline: 31_000 },
  ],
  [
    "terminating: stopping once more gives no new grace",
    { ...terminating, killDeadline: 31_000 },
    stopping(20_000),
    { ...terminating, killDeadline: 31_000 },
  ],
  [
    "terminating: a shorter grace counts from when it was asked for",
    { ...terminating, killDeadline: 31_000 },
    end(5, "deleted", 2_000),
    { ...terminating, cause: "deleted", graceSeconds: 5, killDeadline: 7_000 },
  ],
  [
    "terminating: a longer one changes nothing",
    { ...terminating, killDeadline: 31_000 },
    end(60, "deleted", 2_000),
    { ...terminating, cause: "deleted", killDeadline: 31_000 },
  ],
  [
    "terminating: without any grace it is killed now",
    { ...terminating, killDeadline: 31_000 },
    end(0, "deleted", 2_000),
    { ...terminating, cause: "deleted", graceSeconds: 1, killDeadline: 2_000 },
  ],
  [
    "terminating: somebody waits",
    terminating,
    { type: "awaited", whenStopped: waiter },
    { ...terminating, whenStopped: [waiter] },
  ],
  [
    "terminating: it is wanted again",
    { ...terminating, cause: "deleted" },
    returned,
    { ...terminating, cause: "deleted", returning: pod },
  ],
  [
    "terminating: and then it is not",
    { ...terminating, cause: "deleted", returning: pod },
    end(30),
    { ...terminating, cause: "deleted" },
  ],
  ["terminating: containers gone", terminating, { type: "containersGone" }, terminated],
  [
    "terminating: what its status has to say outlives its containers",
    {
      ...terminating,
      amendStatus: amend,
      isPastDeadline: true,
      returning: pod,
      killDeadline: 1,
      whenStopped: [waiter],
    },
    { type: "containersGone" },
    { ...terminated, amendStatus: amend, isPastDeadline: true, returning: pod },
  ],

  ["terminated: released", terminated, { type: "released" }, finished],
  [
    "terminated: it still comes back",
    { ...terminated, returning: pod },
    { type: "released" },
    { ...finished, returning: pod },
  ],
  ["terminated: deleted while being released", terminated, end(30), { ...terminated, cause: "deleted" }],
  ["terminated: it is wanted again", terminated, returned, { ...terminated, returning: pod }],
  [
    "terminated: and then it is not",
    { ...terminated, returning: pod, amendStatus: amend },
    end(30),
    { ...terminated, cause: "deleted", amendStatus: amend },
  ],

  ["finished: deleted after the end", finished, end(30), { ...finished, cause: "deleted" }],
  ["finished: nothing of it is left", finished, { type: "cleared" }, { ...finished, isCleared: true }],
  ["finished: it is wanted again", finished, returned, { ...finished, returning: pod }],
  ["finished: and then it is not", { ...finished, returning: pod }, end(30), { ...finished, cause: "deleted" }],
];
for (const [name, state, event, wanted] of changes) {
  test(name, () => assert.deepEqual(nextState(state, event), wanted));
}

const events: readonly PodStateEvent[] = [
  { type: "prepared" },
  { type: "remainsStopped", remains: "" },
  { type: "deadlineSet", timer },
  stopping(0),
  { type: "awaited", whenStopped: waiter },
  { type: "containersGone" },
  { type: "released" },
  { type: "cleared" },
  returned,
  ended(true),
  end(30),
];
const meaningless: readonly (readonly [PodState, readonly PodStateEvent["type"][]])[] = [
  [running, ["stopping", "awaited", "containersGone", "released", "cleared", "returned"]],
  [terminating, ["prepared", "remainsStopped", "deadlineSet", "released", "cleared"]],
  [
    terminated,
    ["prepared", "remainsStopped", "deadlineSet", "stopping", "awaited", "containersGone", "cleared", "ended"],
  ],
  [
    finished,
    ["prepared", "remainsStopped", "deadlineSet", "stopping", "awaited", "containersGone", "released", "ended"],
  ],
];
for (const [state, types] of meaningless) {
  for (const event of events) {
    const isMeaningless = types.includes(event.type);
    test(`${state.step}: ${event.type} means ${isMeaningless ? "nothing" : "something"}`, () => {
      assert.equal(nextState(state, event) === state, isMeaningless);
    });
  }
}

test("there is no way back", () => {
  const order = ["running", "terminating", "terminated", "finished"];
  for (const state of [running, terminating, terminated, finished]) {
    for (const event of events) {
      assert.ok(
        order.indexOf(nextState(state, event).step) >= order.indexOf(state.step),
        `${state.step} ${event.type}`,
      );
    }
  }
});

test("an orphan is stopped within the grace it was created with", () => {
  assert.deepEqual(newlyOrphaned(7), { ...terminating, cause: "orphaned", graceSeconds: 7 });
  assert.equal(killDeadlineOf(newlyOrphaned(7), 1_000), 8_000);
});
