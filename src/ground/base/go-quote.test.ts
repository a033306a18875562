import assert from "node:assert/strict";
import { test } from "node:test";
import { goQuote } from "./go-quote.ts";

for (const [text, quoted] of [
  ["", '""'],
  ["plain", '"plain"'],
  ['a"b\\c', '"a\\"b\\\\c"'],
  ["tab\tnew\nret\rbell\u0007", '"tab\\tnew\\nret\\rbell\\a"'],
  ["\u0001\u007f", '"\\x01\\x7f"'],
  ["über 日本 😀", '"über 日本 😀"'],
  ["\u00a0\u200b\ufeff", '"\\u00a0\\u200b\\ufeff"'],
  ["\u{e0001}", '"\\U000e0001"'],
  ["half \ud800", '"half \ufffd"'],
] as const) {
  test(`Go quotes ${JSON.stringify(text)} as ${quoted}`, () => assert.equal(goQuote(text), quoted));
}
