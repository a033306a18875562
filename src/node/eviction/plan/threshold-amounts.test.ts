import assert from "node:assert/strict";
import { test } from "node:test";
import { threshold } from "../../../../test/support/eviction-plan.ts";
import { withContainerThresholds } from "./threshold-amounts.ts";

const ownThresholds = [
  threshold("nodefs.available", "10%"),
  threshold("imagefs.available", "15%"),
  threshold("imagefs.inodesFree", "5%"),
  threshold("containerfs.available", "50%"),
];
for (const { layout, expected } of [
  { layout: "one disk for all", expected: { "containerfs.available": 0.1 } },
  { layout: "images apart", expected: { "containerfs.available": 0.15, "containerfs.inodesFree": 0.05 } },
  { layout: "containers apart", expected: { "containerfs.available": 0.1 } },
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
