import assert from "node:assert/strict";
import { test } from "node:test";
import { madeVisible } from "../dashboard/page/visible.ts";
import { visible, visibleJson, visibleLine } from "./visible-text.ts";

for (const { text, shown } of [
  { text: "plain ünïcode 日本 👩‍🚀\ttab\nline", shown: "plain ünïcode 日本 👩‍🚀\ttab\nline" },
  { text: "\x1b[2J\x1b]0;title\x07", shown: "^[[2J^[]0;title^G" },
  { text: "over\rwritten\b\x00\x7f", shown: "over^Mwritten^H^@^?" },
  { text: "\u009b31m", shown: "<U+009B>31m" },
  { text: "a\u202eb\u2066c\u2069\u200f\u061c", shown: "a<U+202E>b<U+2066>c<U+2069><U+200F><U+061C>" },
  { text: "\u2028\ufeff\u{e0041}", shown: "<U+2028><U+FEFF><U+E0041>" },
]) {
  test(`shown as ${JSON.stringify(shown)}`, () => assert.equal(visible(text), shown));
}

test("a line end in a cell is spelt out", () => assert.equal(visibleLine("a\nb\tc\x1b"), "a^Jb^Ic^["));

test("JSON says the same without a character that a terminal obeys", () => {
  const value = { a: "\x1b\u202e\u009b\u{e0041}\ud800 ü\n", "\u202e": 1 };
  const text = visibleJson(value);
  assert.match(text, /^[\n\x20-\x7eü]*$/);
  assert.deepEqual(JSON.parse(text), value);
});

test("the dashboard's page spells out the same characters", () => {
  const codes = [...Array(0x1_0000).keys(), ...Array.from({ length: 0x1000 }, (_, index) => 0xe_0000 + index)];
  const differing = codes
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code))
    .filter((character) => (visible(character) === character) !== (madeVisible(character) === character));
  assert.deepEqual(differing, []);
});
