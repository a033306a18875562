import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { jsonPatch } from "./json-patch.ts";
import { PatchError } from "./patch-error.ts";

const document = { a: { b: [1, 2, 3] }, "x/y": "slash", "m~n": "tilde" };

describe("JSON patch", () => {
  for (const [title, operation, expected] of [
    ["adds a field", { op: "add", path: "/c", value: 1 }, { ...document, c: 1 }],
    ["inserts into a list", { op: "add", path: "/a/b/1", value: 9 }, { ...document, a: { b: [1, 9, 2, 3] } }],
    ["appends to a list", { op: "add", path: "/a/b/-", value: 9 }, { ...document, a: { b: [1, 2, 3, 9] } }],
    ["replaces an item", { op: "replace", path: "/a/b/0", value: 9 }, { ...document, a: { b: [9, 2, 3] } }],
    ["replaces the whole", { op: "replace", path: "", value: 1 }, 1],
    ["removes an item", { op: "remove", path: "/a/b/1" }, { ...document, a: { b: [1, 3] } }],
    ["copies", { op: "copy", from: "/a/b/0", path: "/c" }, { ...document, c: 1 }],
    ["moves", { op: "move", from: "/x~1y", path: "/a" }, { a: "slash", "m~n": "tilde" }],
    ["unescapes names", { op: "replace", path: "/m~0n", value: 1 }, { ...document, "m~n": 1 }],
    ["tests", { op: "test", path: "/a/b", value: [1, 2, 3] }, document],
  ] as const) {
    test(title, () => assert.deepEqual(jsonPatch(document, [operation]), expected));
  }

  for (const [title, operation, kind] of [
    ["a test that fails", { op: "test", path: "/a/b/0", value: 2 }, "unfit"],
    ["replacing what is not there", { op: "replace", path: "/c", value: 1 }, "unfit"],
    ["removing what is not there", { op: "remove", path: "/a/b/3" }, "unfit"],
    ["adding below what is not there", { op: "add", path: "/c/d", value: 1 }, "unfit"],
    ["an index with leading zeros", { op: "replace", path: "/a/b/00", value: 1 }, "unfit"],
    ["an unknown operation", { op: "swap", path: "/a" }, "malformed"],
    ["a path that is no pointer", { op: "add", path: "a", value: 1 }, "malformed"],
    ["a field that reaches out of the object", { op: "add", path: "/a/__proto__", value: { c: 1 } }, "malformed"],
    ["removing everything", { op: "remove", path: "" }, "malformed"],
  ] as const) {
    test(`${title} is refused`, () => {
      assert.throws(
        () => jsonPatch(document, [operation]),
        (error) => error instanceof PatchError && error.kind === kind,
      );
    });
  }

  test("what is given stays as it was", () => {
    const before = structuredClone(document);
    jsonPatch(document, [{ op: "remove", path: "/a" }]);
    assert.deepEqual(document, before);
  });
});
