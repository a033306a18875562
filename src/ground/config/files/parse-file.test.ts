import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFile } from "./parse-file.ts";
import type { Tree } from "./tree.ts";

const parse = (text: string) => parseFile(new TextEncoder().encode(text));

/** The tree as plain data; integers as numbers. */
function plain(tree: Tree | undefined): unknown {
  if (tree === undefined) return undefined;
  switch (tree.kind) {
    case "map":
      return Object.fromEntries(tree.entries.map(({ key, value }) => [key, plain(value)]));
    case "list":
      return tree.items.map(plain);
    case "int":
      return Number(tree.value);
    case "null":
      return null;
    default:
      return tree.value;
  }
}

for (const [title, text, expected] of [
  ["booleans of YAML 1.1", "[y, Yes, ON, n, off, true]", [true, true, true, false, false, true]],
  ["quoted words stay words", "['yes', \"1\", '~']", ["yes", "1", "~"]],
  ["numbers", "[010, 0x1f, 0b11, 1_000, 1.5, 1e3, -7]", [8, 31, 3, 1000, 1.5, 1000, -7]],
  ["dates and sexagesimals are words", "[2020-01-01, 1:30, 1:30.5]", ["2020-01-01", "1:30", "1:30.5"]],
  ["keys become words", "{1: a, true: b, 1.5: c}", { "1": "a", true: "b", "1.5": "c" }],
  ["aliases", "a: &x {b: 1}\nc: *x", { a: { b: 1 }, c: { b: 1 } }],
  ["merge keys, own keys first", "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3", { a: { b: 1, c: 2 }, d: { b: 1, c: 3 } }],
  [
    "several merged maps, the first wins",
    "a: &x {k: 1}\nb: &y {k: 2, l: 3}\nc: {<<: [*x, *y]}",
    { a: { k: 1 }, b: { k: 2, l: 3 }, c: { k: 1, l: 3 } },
  ],
  ["a quoted << is a key", "{'<<': 1}", { "<<": 1 }],
  ["block text", "a: |\n  x\n  y\n", { a: "x\ny\n" }],
  ["JSON with tabs", '{\n\t"a": [1, null, "\\u00e4"]\n}', { a: [1, null, "ä"] }],
  ["nothing", "# comment only\n", null],
] as const) {
  test(title, async () => {
    const { tree, findings } = await parse(text);
    assert.deepEqual(findings, []);
    assert.deepEqual(plain(tree), expected);
  });
}

for (const [title, text, message, line] of [
  ["an alias before its anchor", "a: *x\nb: &x 1", /alias|anchor/i, 1],
  ["an alias of itself", "a: &a [*a]", /more than 64 levels|levels of nesting/, 1],
  ["a map as key", "a: 1\n? {b: c}\n: d", /a key must be a string, a number or a boolean/, 2],
  ["merging what is no map", "a: 1\nb: {<<: 5}", /<< wants a map/, 2],
  ["a bracket that is not closed", "a: 1\nb: [", /./, 2],
] as const) {
  test(`broken: ${title}`, async () => {
    const { tree, findings } = await parse(text);
    assert.equal(tree, undefined);
    assert.match(findings[0]?.message ?? "", message);
    assert.equal(findings[0]?.kind, "broken");
    assert.equal(findings[0]?.at.line, line);
  });
}

test("bytes that are no text", async () => {
  const { tree, findings } = await parseFile(new Uint8Array([0x61, 0xff, 0xfe]));
  assert.equal(tree, undefined);
  assert.equal(findings[0]?.message, "the file is not valid UTF-8 text");
});

test("repeated keys are found at any depth, with both places", async () => {
  const { tree, findings } = await parse("a:\n  b: 1\n  c: 2\n  b: 3\n");
  assert.deepEqual(findings, [
    { kind: "duplicate", message: 'key "a.b" is already set on line 2', at: { line: 4, column: 3 } },
  ]);
  assert.deepEqual(plain(tree), { a: { b: 3, c: 2 } });
});
