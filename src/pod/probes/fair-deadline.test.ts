import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import type { Clock } from "../../ground/base/index.ts";
import { fairDeadline } from "./fair-deadline.ts";

/** A clock whose timers fire later than asked for, by the amounts given, as on a machine that stalls. */
function stalling(clock: FakeClock, lateMs: number[]): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    after: (ms, action) => clock.after(ms + (lateMs.shift() ?? 0), action),
  };
}

for (const { name, late, firesAt } of [
  { name: "on time", late: [], firesAt: 1_000 },
  { name: "a little late is on time", late: [50], firesAt: 1_050 },
  { name: "time that the agent lost is granted again", late: [400], firesAt: 1_800 },
  { name: "but no more than the timeout itself", late: [5_000], firesAt: 7_000 },
  { name: "nor for ever", late: [400, 400, 400, 400, 400], firesAt: 1_400 + 800 + 800 + 800 },
]) {
  test(name, async () => {
    const clock = new FakeClock();
    let firedAt: number | undefined;
    fairDeadline(stalling(clock, [...late]), 1_000, () => {
      firedAt = clock.monotonic();
    });
    await clock.advance(firesAt - 1);
    assert.equal(firedAt, undefined);
    await clock.advance(60_000);
    assert.equal(firedAt, firesAt);
  });
}

test("a cancelled one stays silent, extended or not", async () => {
  const clock = new FakeClock();
  let fired = 0;
  const plain = fairDeadline(clock, 1_000, () => fired++);
  const extended = fairDeadline(stalling(clock, [400]), 1_000, () => fired++);
  await clock.advance(500);
  plain.cancel();
  await clock.advance(1_000);
  extended.cancel();
  await clock.advance(60_000);
  assert.equal(fired, 0);
  assert.equal(clock.pendingTimers, 0);
});
