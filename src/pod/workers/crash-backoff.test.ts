import assert from "node:assert/strict";
import { test } from "node:test";
import { exited, testContainer } from "../../../test/support/pods.ts";
import { CrashBackoff } from "./crash-backoff.ts";

const main = testContainer("main");
const ended = (finishedAt: number, id = "a") => exited("main", 1, { finishedAt, id: id as never });

for (const maxMs of [30_000, 300_000]) {
  test(`one that has run for twice the longest wait starts over: ${maxMs} ms`, () => {
    const backoff = new CrashBackoff({ initialMs: 10_000, maxMs }, undefined);
    backoff.advance(main, ended(0), 0);
    backoff.advance(main, ended(10_000), 10_000);
    const soon = 10_000 + 2 * maxMs;
    assert.equal(backoff.waitFor(main, ended(soon), soon)?.delayMs, 20_000);
    assert.equal(backoff.waitFor(main, ended(soon + 1), soon + 1), undefined);
  });
}

test("one that ended before the clock was set back waits once more, and no longer", () => {
  const backoff = new CrashBackoff({ initialMs: 10_000, maxMs: 300_000 }, undefined);
  const hours = 5 * 3_600_000;
  backoff.advance(main, ended(hours), hours);
  assert.deepEqual(backoff.waitFor(main, ended(hours), 1_000), { delayMs: 10_000, until: 11_000 });
  assert.deepEqual(backoff.waitFor(main, ended(hours), 10_999), { delayMs: 10_000, until: 11_000 });
  assert.equal(backoff.waitFor(main, ended(hours), 11_000), undefined);
  assert.deepEqual(backoff.waitFor(main, ended(hours, "b"), 20_000)?.until, 30_000, "the next instance waits too");
});
