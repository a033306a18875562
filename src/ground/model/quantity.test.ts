import assert from "node:assert/strict";
import { test } from "node:test";
import { milliUnits, parseQuantity, tryParseQuantity, wholeUnits } from "./quantity.ts";

for (const [text, milli, whole] of [
  ["0", 0n, 0n],
  ["1", 1000n, 1n],
  ["100m", 100n, 1n],
  ["0.1", 100n, 1n],
  ["1.5", 1500n, 2n],
  [".5", 500n, 1n],
  ["1n", 1n, 1n],
  ["1500u", 2n, 1n],
  ["2k", 2_000_000n, 2000n],
  ["1Ki", 1_024_000n, 1024n],
  ["1.5Gi", 1_610_612_736_000n, 1_610_612_736n],
  ["2e3", 2_000_000n, 2000n],
  ["1E", 10n ** 21n, 10n ** 18n],
  ["5E-1", 500n, 1n],
  ["-1", -1000n, -1n],
  ["+3", 3000n, 3n],
] as const) {
  test(`quantity ${text}`, () => {
    assert.equal(milliUnits(parseQuantity(text)), milli);
    assert.equal(wholeUnits(parseQuantity(text)), whole);
  });
}

for (const text of ["", "x", "1 Gi", "1gi", "1.2.3", "Mi", "1e", "--1", "1K", "0x10", "."]) {
  test(`${JSON.stringify(text)} is no quantity`, () => assert.equal(tryParseQuantity(text), undefined));
}

test("more digits than anybody has a use for are no quantity, cost nothing and are not repeated", () => {
  for (const text of ["9".repeat(100_000), `0.${"9".repeat(100_000)}`, `${"9".repeat(100_000)}x`, "1".repeat(257)]) {
    assert.equal(tryParseQuantity(text), undefined);
    assert.throws(
      () => parseQuantity(text),
      (error) => error instanceof Error && error.message.length < 1_000,
    );
  }
  assert.equal(wholeUnits(parseQuantity(`${"0".repeat(200)}7`)), 7n);
});
