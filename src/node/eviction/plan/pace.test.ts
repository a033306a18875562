import assert from "node:assert/strict";
import { test } from "node:test";
import { hard, Mi, observations, seen } from "../../../../test/support/eviction-plan.ts";
import { nextLookMs } from "./pace.ts";
import type { EvictionStep } from "./planner.ts";
import { type Look, noPressure } from "./thresholds-met.ts";

const rest: EvictionStep = { type: "rest" };
for (const { name, available, step = rest, changesAt, expected } of [
  { name: "far away, rarely", available: 40_000, expected: 10_000 },
  { name: "as soon as it could be reached", available: 100 + 2048, expected: 2_000 },
  { name: "close, often", available: 101, expected: 250 },
  { name: "a soft threshold in its grace, now and then", available: 50, expected: 1_000 },
  { name: "when time alone changes something, then", available: 20_000, changesAt: 1234, expected: 1234 },
  {
    name: "while somebody goes, all the time",
    available: 50,
    step: { type: "wait", threshold: hard } as EvictionStep,
    expected: 100,
  },
  {
    name: "when nothing helps, not in vain",
    available: 50,
    step: { type: "stuck", threshold: hard } as EvictionStep,
    expected: 2_000,
  },
]) {
  test(`pace: ${name}`, () => {
    const look: Look = { record: noPressure, acting: [], conditions: [], changesAt };
    const seenNow = observations(seen("memory.available", available * Mi));
    assert.equal(nextLookMs(look, step, { thresholds: [hard], observations: seenNow }, 0), expected);
  });
}
