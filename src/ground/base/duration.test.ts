import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, parseDuration } from "./index.ts";

for (const [text, ms] of [
  ["0", 0],
  ["0s", 0],
  ["10s", 10_000],
  ["1m20s", 80_000],
  ["5m0s", 300_000],
  ["1h0m0s", 3_600_000],
  ["26h1m0.001s", 93_660_001],
  ["250ms", 250],
  ["1.234s", 1_234],
  ["1.5µs", 0.0015],
  ["7ns", 0.000007],
  ["-1.5s", -1_500],
] as const) {
  test(`duration ${text}`, () => {
    assert.equal(parseDuration(text), ms);
    assert.equal(formatDuration(ms), text === "0" ? "0s" : text);
  });
}

test("durations written another way than Go prints them", () => {
  assert.equal(parseDuration("1h30m"), 5_400_000);
  assert.equal(parseDuration("+90s"), 90_000);
  assert.equal(parseDuration(".5s"), 500);
  assert.equal(parseDuration("1.s"), 1_000);
  assert.equal(parseDuration("100us"), 0.1);
});

for (const text of ["", "10", "s", "1d", "1h 30m", "1..5s", "--1s", "1e3s", "1h30", ".s"]) {
  test(`no duration: "${text}"`, () => assert.equal(parseDuration(text), undefined));
}
