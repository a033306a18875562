import assert from "node:assert/strict";
import { test } from "node:test";
import { Parser } from "yaml";
import { boundNesting, deepestYaml } from "./yaml-nesting.ts";

const read = (text: string): number => [...boundNesting(new Parser().parse(text))].length;

for (const opening of ["[", "{a: ", "- ", "? ", "[a, ", "!!seq ["]) {
  test(`nesting by ${JSON.stringify(opening)} is bounded`, () => {
    assert.ok(read(`${opening.repeat(deepestYaml / 4)}x`) > 0);
    for (const levels of [deepestYaml + 1, 2_000]) {
      assert.throws(() => read(`${opening.repeat(levels)}x`), /nested more than 200 levels deep/, `${levels}`);
    }
  });
}

test("maps below one another by their indentation are bounded", () => {
  const deep = (levels: number): string =>
    Array.from({ length: levels }, (_, level) => `${" ".repeat(level)}a:`).join("\n");
  assert.ok(read(deep(deepestYaml / 4)) > 0);
  assert.throws(() => read(deep(deepestYaml + 2)), /nested more than/);
});

test("brackets in texts are texts, and many values beside one another are not deep", () => {
  assert.ok(read(`a: "${"[{".repeat(5_000)}"\nb: |\n  ${"[".repeat(5_000)}\n`) > 0);
  assert.ok(read(`[${"[1], ".repeat(5_000)}]`) > 0);
});
