import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { Backoff, KeyedWorkers, Limiter, Pause, systemClock, TaskScope } from "./index.ts";

test("TaskScope: leaving it aborts and awaits every task", async () => {
  const ended: string[] = [];
  {
    await using scope = new TaskScope();
    for (const name of ["a", "b"]) {
      scope.spawn(name, async (signal) => {
        await systemClock.sleep(60_000, signal).catch(() => {});
        ended.push(name);
      });
    }
  }
  assert.deepEqual(ended, ["a", "b"]);
});

test("TaskScope: a failing task aborts the others with its error as cause", async () => {
  await using scope = new TaskScope();
  scope.spawn("waits", (signal) => systemClock.sleep(60_000, signal));
  scope.spawn("dies", async () => {
    throw new Error("boom");
  });
  await once(scope.signal, "abort");
  await scope.stop();
  assert.match(String(scope.signal.reason), /task "dies" failed/);
  assert.equal(scope.size, 0);
});

test("TaskScope: stops with its parent signal", async () => {
  const parent = new AbortController();
  await using scope = new TaskScope(parent.signal);
  scope.spawn("waits", (signal) => systemClock.sleep(60_000, signal));
  parent.abort(new Error("enough"));
  assert.equal(scope.signal.aborted, true);
});

test("KeyedWorkers: wakes during a run collapse into one more run, other keys run beside it", async () => {
  await using scope = new TaskScope();
  const runs: string[] = [];
  let release: () => void = () => {};
  const blocked = new Promise<void>((resolve) => {
    release = resolve;
  });
  const workers = new KeyedWorkers<string>(scope, async (key) => {
    runs.push(key);
    if (key === "slow" && runs.filter((run) => run === "slow").length === 1) await blocked;
  });
  workers.wake("slow");
  workers.wake("slow");
  workers.wake("slow");
  workers.wake("fast");
  assert.deepEqual(runs, ["slow", "fast"]);
  release();
  while (workers.size > 0) await systemClock.sleep(1, scope.signal);
  assert.deepEqual(runs, ["slow", "fast", "slow"]);
});

test("Limiter: never more than its limit, in order, and an aborted waiter leaves the queue", async () => {
  const limiter = new Limiter(1);
  const never = new AbortController();
  const order: number[] = [];
  let release: () => void = () => {};
  const first = limiter.run(
    () =>
      new Promise<void>((resolve) => {
        release = resolve;
      }),
    never.signal,
  );
  const leaver = new AbortController();
  const second = limiter.run(async () => order.push(2), leaver.signal);
  const third = limiter.run(async () => order.push(3), never.signal);
  leaver.abort(new Error("left"));
  await assert.rejects(second, /left/);
  release();
  await Promise.all([first, third]);
  assert.deepEqual(order, [3]);
  assert.equal(limiter.held, 0);
});

test("Backoff: 10 s doubling to 300 s, forgotten after 600 s of quiet", () => {
  const backoff = new Backoff<string>({ initialMs: 10_000, maxMs: 300_000, forgetMs: 600_000 });
  let now = 0;
  const delays: number[] = [];
  for (let failure = 0; failure < 7; failure++) {
    assert.equal(backoff.isWaiting("c", now, now + backoff.get("c")), false);
    delays.push(backoff.advance("c", now, now));
    assert.equal(backoff.isWaiting("c", now, now + backoff.get("c") - 1), true);
    now += backoff.get("c");
  }
  assert.deepEqual(delays, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
  assert.equal(backoff.isWaiting("c", now + 600_001, now + 600_001), false);
  assert.equal(backoff.advance("c", now + 600_001, now + 600_001), 10_000);
});

test("FakeClock: fires timers in order of time and stops where told", async () => {
  const clock = new FakeClock(0);
  const fired: number[] = [];
  clock.after(20, () => fired.push(clock.now()));
  clock.after(10, () => {
    fired.push(clock.now());
    clock.after(5, () => fired.push(clock.now()));
  });
  await clock.advance(19);
  assert.deepEqual(fired, [10, 15]);
  await clock.advance(1);
  assert.deepEqual(fired, [10, 15, 20]);
  assert.equal(clock.pendingTimers, 0);
});

test("a pause ends by time or when cut short; an abort rejects, so that nobody acts once more", async () => {
  const clock = new FakeClock();
  const pause = new Pause(clock);
  const stop = new AbortController();
  const byTime = pause.wait(1_000, stop.signal);
  await clock.advance(1_000);
  await byTime;
  const cut = pause.wait(1_000, stop.signal);
  pause.cutShort();
  await cut;
  const aborted = assert.rejects(pause.wait(1_000, stop.signal), /enough/);
  stop.abort(new Error("enough"));
  await aborted;
  await assert.rejects(pause.wait(1_000, stop.signal), /enough/);
  assert.equal(clock.pendingTimers, 0);
});
