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
