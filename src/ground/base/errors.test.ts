import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { codeOf, hasCode, isMissing } from "./errors.ts";

test("what is missing is told from what is another trouble", async () => {
  const failure = (path: string): Promise<unknown> =>
    readFile(path).then(
      () => assert.fail(`${path} can be read`),
      (error: unknown) => error,
    );
  assert.equal(isMissing(await failure("/nowhere/at/all")), true);
  assert.equal(isMissing(await failure("/dev/null/below")), true);
  assert.equal(isMissing(await failure("/")), false);
});

test("an error has one of several codes, or none", () => {
  const refused = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  assert.equal(hasCode(refused, "ENOENT", "ECONNREFUSED"), true);
  assert.equal(hasCode(refused, "ENOENT"), false);
  for (const other of [new Error("plain"), Object.assign(new Error("number"), { code: 14 }), "ENOENT", undefined]) {
    assert.equal(codeOf(other), undefined);
    assert.equal(hasCode(other, "ENOENT"), false);
  }
});
