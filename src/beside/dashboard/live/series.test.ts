import assert from "node:assert/strict";
import { test } from "node:test";
import { Series } from "./series.ts";

test("a clock that is set back begins the charts anew", async () => {
  const series = new Series(2, 3);
  for (const at of [10, 20, 30, 40]) series.push([at, at]);
  assert.deepEqual(
    series.rows().map(([at]) => at),
    [20, 30, 40],
  );
  series.push([15, 1]);
  series.push([16, 2]);
  assert.deepEqual(series.rows(), [
    [15, 1],
    [16, 2],
  ]);
});
