import assert from "node:assert/strict";
import { test } from "node:test";
import { threshold } from "../../../../test/support/eviction-plan.ts";
import { wantedAmount, wantedText, withContainerThresholds } from "./threshold-amounts.ts";

const ownThresholds = [
  threshold("nodefs.available", "10%"),
  threshold("imagefs.available", "15%"),
  threshold("imagefs.inodesFree", "5%"),
  threshold("containerfs.available", "50%"),
];
for (const { layout, expected } of [
  { layout: "one disk for all", expected: { "containerfs.available": Math.fround(0.1) } },
  {
    layout: "images apart",
    expected: { "containerfs.available": Math.fround(0.15), "containerfs.inodesFree": Math.fround(0.05) },
  },
  { layout: "containers apart", expected: { "containerfs.available": Math.fround(0.1) } },
] as const) {
  test(`thresholds of what containers write, ${layout}: those of the disk it is on, whatever is set`, () => {
    const inherited = withContainerThresholds(ownThresholds, layout).filter(({ signal }) =>
      signal.startsWith("container"),
    );
    const fractions = inherited.map(({ signal, amount }) => [
      signal,
      "fraction" in amount ? amount.fraction : undefined,
    ]);
    assert.deepEqual(Object.fromEntries(fractions), expected);
  });
}

for (const [text, signal, capacity, amount, shown] of [
  ["10%", "nodefs.available", 100_000_000_000, 10_000_000_149, "10000000149"],
  ["12.3%", "imagefs.available", 100_000_000_000, 12_300_000_339, "12300000339"],
  ["5%", "nodefs.inodesFree", 6_553_600, 327_680, "320Ki"],
  ["1k", "nodefs.inodesFree", 6_553_600, 1_000, "1k"],
] as const) {
  test(`thresholds: ${text} of ${capacity} is what the kubelet makes of it`, () => {
    const own = threshold(signal, text);
    const observed = { available: 1, capacity };
    assert.deepEqual([wantedAmount(own, observed), wantedText(own, observed)], [amount, shown]);
  });
}
