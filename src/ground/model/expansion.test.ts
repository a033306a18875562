import assert from "node:assert/strict";
import { test } from "node:test";
import { leastProcessorTime } from "../../../test/support/processor-time.ts";
import { ExpansionBudget, ExpansionTooLongError, expand, expandStrictly, MissingVariablesError } from "./expansion.ts";

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
  ["a$$$$b$$$(A)$$", "a$$b$one$"],
  ["$(UNKNOWN)$$$(A)$(UNKNOWN)", "$(UNKNOWN)$one$(UNKNOWN)"],
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

test("openings without an end cost no more than their length", async () => {
  const cost = (length: number): Promise<number> =>
    leastProcessorTime(() => {
      expand("$(".repeat(length / 2), lookup);
      expand(`)${"$(".repeat(length / 2)}`, lookup);
    });
  const [small, large] = [await cost(100_000), await cost(1_600_000)];
  assert.ok(large < 200 * Math.max(small, 1_000), `${small} us for 100 kB, ${large} us for 1.6 MB`);
});

test("values that repeat each other are refused before they fill the memory", () => {
  const values = new Map([["0", "x".repeat(1_000)]]);
  const double = (): void => {
    for (let level = 1; level < 40; level++) {
      values.set(
        `${level}`,
        expand(`$(${level - 1})$(${level - 1})`, (name) => values.get(name)),
      );
    }
  };
  assert.throws(double, ExpansionTooLongError);
  assert.ok(values.size < 20);
});

test("references beyond what a container can need are refused, known or not, in one text or in many", () => {
  for (const reference of ["$(A)", "$(EMPTY)", "$(UNKNOWN)", "$()"]) {
    assert.throws(() => expand(reference.repeat(300_000), lookup), ExpansionTooLongError, reference);
    const budget = new ExpansionBudget();
    const many = (): void => {
      for (let text = 0; text < 300; text++) expand(reference.repeat(1_000), lookup, budget);
    };
    assert.throws(many, ExpansionTooLongError, reference);
    assert.equal(expand(reference.repeat(1_000), lookup), expand(reference, lookup).repeat(1_000));
  }
});
