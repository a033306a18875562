import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { TokenBucket } from "./token-bucket.ts";

const never = new AbortController().signal;

test("a burst passes at once, then one per interval in the order of the calls", async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(2, 3, clock);
  const passed: string[] = [];
  for (let call = 0; call < 6; call++) {
    void bucket.take(never).then(() => passed.push(`${call}@${clock.monotonic()}`));
  }
  await clock.advance(0);
  assert.deepEqual(passed, ["0@0", "1@0", "2@0"]);
  await clock.advance(10_000);
  assert.deepEqual(passed.slice(3), ["3@500", "4@1000", "5@1500"]);
});

test("a caller who gives up returns its token", async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(1, 1, clock);
  await bucket.take(never);
  const impatient = new AbortController();
  const given = bucket.take(impatient.signal).catch(() => "gave up");
  impatient.abort();
  assert.equal(await given, "gave up");
  let passedAt: number | undefined;
  void bucket.take(never).then(() => {
    passedAt = clock.monotonic();
  });
  await clock.advance(5_000);
  assert.equal(passedAt, 1_000);
});

test("tryTake never waits, and tokens do not pile up beyond the burst", async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(10, 2, clock);
  assert.deepEqual([bucket.tryTake(), bucket.tryTake(), bucket.tryTake()], [true, true, false]);
  await clock.advance(60_000);
  assert.deepEqual([bucket.tryTake(), bucket.tryTake(), bucket.tryTake()], [true, true, false]);
});
