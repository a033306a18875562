import assert from "node:assert/strict";
import { test } from "node:test";
import { matchesLabelSelector, matchesNodeSelector } from "./selectors.ts";

const node = { name: "n1", labels: { disk: "ssd", cores: "8", empty: "", odd: "8x", low: "-3", huge: "9".repeat(30) } };
const expression = (key: string, operator: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, ...(values.length > 0 && { values }) }],
});
const field = (key: string, operator: string, ...values: string[]) => ({ matchFields: [{ key, operator, values }] });

// Expected values are what the scheduler's own helper says (component-helpers, nodeaffinity).
for (const [term, expected] of [
  [expression("disk", "In", "hdd", "ssd"), true],
  [expression("disk", "NotIn", "hdd"), true],
  [expression("missing", "NotIn", "x"), true],
  [expression("disk", "Exists"), true],
  [expression("missing", "DoesNotExist"), true],
  [expression("empty", "In", ""), true],
  [expression("cores", "Gt", "7"), true],
  [expression("cores", "Gt", "+7"), false],
  [expression("cores", "Gt", "007"), true],
  [expression("cores", "Gt", "8"), false],
  [expression("cores", "Lt", "9"), true],
  [expression("low", "Lt", "1"), true],
  [expression("cores", "Gt", "abc"), false],
  [expression("cores", "Lt", "abc"), false],
  [expression("cores", "Gt", ""), false],
  [expression("cores", "Gt", "1.5"), false],
  [expression("cores", "Gt", "0x1"), false],
  [expression("cores", "Gt", "1e0"), false],
  [expression("cores", "Gt", "1", "2"), false],
  [expression("cores", "Gt"), false],
  [expression("cores", "Lt", "9".repeat(30)), false],
  [expression("odd", "Gt", "1"), false],
  [expression("huge", "Gt", "1"), false],
  [expression("missing", "Gt", "1"), false],
  [expression("disk", "Gt", "1"), false],
  [expression("disk", "In"), false],
  [expression("missing", "NotIn"), false],
  [expression("disk", "Exists", "x"), false],
  [expression("disk", "NotIn", "not a label value!"), false],
  [expression("not a key!", "DoesNotExist"), false],
  [expression("disk", "Near", "x"), false],
  [expression("constructor", "Exists"), false],
  [expression("__proto__", "Exists"), false],
  [field("metadata.name", "In", "n1"), true],
  [field("metadata.name", "NotIn", "n2"), true],
  [field("metadata.name", "In", "n1", "n2"), false],
  [field("metadata.name", "Exists"), false],
  [field("spec.other", "In", "n1"), false],
  [{}, false],
] as const) {
  test(`node selector ${JSON.stringify(term)}: ${expected}`, () =>
    assert.equal(matchesNodeSelector([term], node), expected));
}

test("one good term is enough, whatever the others say", () => {
  assert.equal(matchesNodeSelector([expression("cores", "Gt", "abc"), expression("disk", "Exists")], node), true);
  assert.equal(matchesNodeSelector([], node), false);
});

test("a term of odd size costs no time", () => {
  const long = "9".repeat(1_000_000);
  const begun = process.cpuUsage();
  for (let round = 0; round < 20; round++) matchesNodeSelector([expression("cores", "Gt", long)], node);
  assert.ok(process.cpuUsage(begun).user < 5_000_000, "the text is not turned into a number");
});

for (const [selector, expected] of [
  [{}, true],
  [{ matchLabels: { disk: "ssd" } }, true],
  [{ matchLabels: { disk: "hdd" } }, false],
  [{ matchLabels: { constructor: "x" } }, false],
  [expression("disk", "In", "ssd"), true],
  [expression("disk", "NotIn", "ssd"), false],
  [expression("cores", "Gt", "1"), false],
  [expression("disk", "In"), false],
] as const) {
  test(`label selector ${JSON.stringify(selector)}: ${expected}`, () =>
    assert.equal(matchesLabelSelector(selector, node.labels), expected));
}
