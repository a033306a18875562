import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalQuantity } from "./quantity-format.ts";

for (const [text, wanted] of [
  ["0", "0"],
  ["0.5", "500m"],
  ["1500m", "1500m"],
  ["2000m", "2"],
  ["1000", "1k"],
  ["1e3", "1k"],
  ["1024", "1024"],
  ["1024Mi", "1Gi"],
  ["1.5Gi", "1536Mi"],
  ["0.5Ki", "512"],
  ["1Ki", "1Ki"],
  ["1u", "1u"],
  ["-1500m", "-1500m"],
  ["12345678901234567890", "12345678901234567890"],
  ["not a quantity", "not a quantity"],
] as const) {
  test(`${text} is printed as ${wanted}`, () => assert.equal(canonicalQuantity(text), wanted));
}
