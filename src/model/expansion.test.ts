import assert from "node:assert/strict";
import { test } from "node:test";
import { expand, expandStrictly, MissingVariablesError } from "./expansion.ts";

const variables = new Map([
  ["A", "one"],
  ["B", "$(A)"],
  ["EMPTY", ""],
  ["with space", "spaced"],
  ["with$(dollar", "odd"],
]);
const lookup = (name: string): string | undefined => variables.get(name);

for (const [text, expanded] of [
  ["", ""],
  ["plain", "plain"],
  ["$(A)", "one"],
  ["x$(A)y$(A)z", "xoneyonez"],
  ["$(A)$(A)", "oneone"],
  ["$(UNKNOWN)", "$(UNKNOWN)"],
  ["$(B)", "$(A)"],
  ["$(EMPTY)", ""],
  ["$()", "$()"],
  ["$$", "$"],
  ["$$$", "$$"],
  ["$$$$", "$$"],
  ["$$(A)", "$(A)"],
  ["$$$(A)", "$one"],
  ["$$$$(A)", "$$(A)"],
  ["$", "$"],
  ["cost: 5$", "cost: 5$"],
  ["$x", "$x"],
  ["$A", "$A"],
  [`$${"{A}"}`, `$${"{A}"}`],
  ["$(A", "$(A"],
  ["$(A $$ x", "$(A $ x"],
  ["$(with space)", "spaced"],
  ["$(with$(dollar)", "odd"],
  ["$((A))", "$((A))"],
  ["$x$(A)", "$xone"],
  ["$(A)$", "one$"],
  ["ü$(A)é", "üoneé"],
] as const) {
  test(`${JSON.stringify(text)} becomes ${JSON.stringify(expanded)}`, () =>
    assert.equal(expand(text, lookup), expanded));
}

test("strict expansion gives the same text when everything is known", () => {
  assert.equal(expandStrictly("logs/$(A)/$$(X)", lookup), "logs/one/$(X)");
});

test("strict expansion names all missing and empty variables, sorted, once each", () => {
  assert.throws(
    () => expandStrictly("$(Z)/$(EMPTY)/$(A)/$(Z)/$(C)", lookup),
    (error) => error instanceof MissingVariablesError && error.message === "missing value for C, EMPTY, Z",
  );
});
