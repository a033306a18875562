import assert from "node:assert/strict";
import { test } from "node:test";
import { quotaOfMilliCpu, sharesOfMilliCpu, weightOfShares } from "./cpu-units.ts";

for (const [milli, shares, weight] of [
  [0, 2, 1],
  [1, 2, 1],
  [2, 2, 1],
  [3, 3, 1],
  [100, 102, 4],
  [500, 512, 20],
  [1000, 1024, 39],
  [4000, 4096, 157],
  [256_000, 262_144, 10_000],
  [1_000_000, 262_144, 10_000],
] as const) {
  test(`${milli} millicores are ${shares} shares, weight ${weight}`, () => {
    assert.equal(sharesOfMilliCpu(milli), shares);
    assert.equal(weightOfShares(shares), weight);
  });
}

for (const [milli, period, quota] of [
  [0, 100_000, 0],
  [1, 100_000, 1000],
  [9, 100_000, 1000],
  [10, 100_000, 1000],
  [15, 100_000, 1500],
  [250, 100_000, 25_000],
  [1000, 100_000, 100_000],
  [2500, 100_000, 250_000],
  [100, 5000, 1000],
  [1500, 5000, 7500],
] as const) {
  test(`${milli} millicores per ${period} us are a quota of ${quota}`, () =>
    assert.equal(quotaOfMilliCpu(milli, period), quota));
}
