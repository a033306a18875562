import assert from "node:assert/strict";
import { test } from "node:test";
import { envFileValue } from "./env-file.ts";

test("lines go on behind a backslash, names and values are without blanks around them", () => {
  assert.equal(envFileValue(" A = 1 \nB=2\\\n  3 \\\n4\nC =\t5", "B"), "2 3 4");
  assert.equal(envFileValue(" A = 1 \n", "A"), "1");
  assert.equal(envFileValue("C =\t5", "C"), "5");
  assert.equal(envFileValue("A==b", "A"), "=b");
  assert.throws(() => envFileValue("=1", "A"), /line 1/);
  assert.throws(() => envFileValue("A", "A"), /line 1/);
  assert.throws(() => envFileValue("A=1\\\n\n", "A"), /a blank line interrupts line 2/);
});

// Each of these would take minutes to hours if the work grew with the square of the length.
test("attack: long lines of blanks and lines that go on and on take no longer than others", () => {
  const many = 500_000;
  assert.equal(envFileValue(`A=1${" ".repeat(many)}2\nB=3`, "B"), "3");
  assert.equal(envFileValue(`X${" ".repeat(many)}Y=1\nB=3`, "B"), "3");
  assert.equal(envFileValue(`A=${"1\\\n".repeat(many / 2)}2\nB=3`, "B"), "3");
  assert.equal(envFileValue(`${"\t ".repeat(many / 2)}B=3`, "B"), "3");
});
