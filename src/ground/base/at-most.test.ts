import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { mapAtMost, settleAtMost } from "./at-most.ts";

test("no more than the limit at once, each item once, results in order", async () => {
  let running = 0;
  let most = 0;
  const results = await mapAtMost(3, Array(20).keys(), async (item) => {
    most = Math.max(most, ++running);
    for (let turns = item % 4; turns >= 0; turns--) await turn();
    running--;
    return item * 2;
  });
  assert.deepEqual(
    results,
    Array.from({ length: 20 }, (_, item) => item * 2),
  );
  assert.equal(most, 3);
});

test("after a failure nothing new begins, and what runs has ended before it is thrown", async () => {
  const begun: number[] = [];
  let ended = 0;
  const work = mapAtMost(2, [0, 1, 2, 3, 4], async (item) => {
    begun.push(item);
    await turn();
    if (item === 0) throw new Error("first");
    await turn();
    ended++;
  });
  await assert.rejects(work, /first/);
  assert.deepEqual([begun, ended], [[0, 1], 1]);
});

test("where failures are answers, every item is tried", async () => {
  const settled = await settleAtMost(2, ["a", "b", "c"], async (item) => {
    if (item === "b") throw new Error(item);
    return item;
  });
  assert.deepEqual(
    settled.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
});
