import assert from "node:assert/strict";
import { test } from "node:test";
import { metricValue, parseExposition, seriesOf } from "../../../test/support/exposition.ts";
import { labelText, MetricText, numberText } from "./metric-text.ts";
import { MetricRegistry } from "./registry.ts";

async function textOf(registry: MetricRegistry): Promise<string> {
  let text = "";
  const target = new MetricText(async (piece) => {
    text += piece;
  });
  await registry.write(target);
  await target.flush();
  return text;
}

test("a family without labels shows from the start, one with labels once a set was used", async () => {
  const registry = new MetricRegistry();
  const plain = registry.counter("a_total", "Things");
  const labelled = registry.counter("b_total", "Things by kind", ["kind", "by"]);
  registry.histogram("c_seconds", "How long", [1, 2]);
  registry.gauge("d", "Not used", ["x"]);
  assert.deepEqual([...parseExposition(await textOf(registry)).keys()], ["a_total", "c_seconds"]);
  plain.inc({});
  plain.inc({}, 2);
  labelled.inc({ kind: "x", by: "y" });
  const families = parseExposition(await textOf(registry));
  assert.equal(metricValue(families, "a_total"), 3);
  assert.equal(metricValue(families, "b_total", { kind: "x", by: "y" }), 1);
});

test("labels come in the order of their names, whatever order they were given in", async () => {
  const registry = new MetricRegistry();
  registry.gauge("g", "G", ["pod", "container", "namespace"]).set({ namespace: "n", pod: "p", container: "c" }, 1);
  assert.match(await textOf(registry), /^g\{container="c",namespace="n",pod="p"\} 1$/m);
  assert.equal(labelText({ b: "1", a: "2" }), '{a="2",b="1"}');
  assert.equal(labelText({}), "");
});

test("histograms are cumulative and count what is beyond the last bound", async () => {
  const registry = new MetricRegistry();
  const histogram = registry.histogram("h_seconds", "H", [0.1, 1, 10], ["of"]);
  for (const value of [0.05, 0.1, 0.5, 20]) histogram.observe({ of: "x" }, value);
  const families = parseExposition(await textOf(registry));
  const counts = seriesOf(families, "h_seconds_bucket").map(({ labels, value }) => [labels["le"], value]);
  assert.deepEqual(counts, [
    ["0.1", 2],
    ["1", 3],
    ["10", 3],
    ["+Inf", 4],
  ]);
  assert.equal(metricValue(families, "h_seconds_sum", { of: "x" }), 20.65);
});

test("whatever a label holds, it is read back as it was", async () => {
  const registry = new MetricRegistry();
  const gauge = registry.gauge("g", 'Help with \\ and\nnew "line"', ["x"]);
  const values = ['a"b', "a\\b", "a\nb", "", 'e",x="forged', "{}", "é"];
  for (const [index, x] of values.entries()) gauge.set({ x }, index);
  const samples = parseExposition(await textOf(registry)).get("g")?.samples ?? [];
  assert.deepEqual(
    samples.map(({ labels }) => labels["x"]),
    values,
  );
});

test("series of something that is gone are dropped, and of nothing else", async () => {
  const registry = new MetricRegistry();
  const counter = registry.counter("p_total", "P", ["pod", "namespace", "result"]);
  for (const pod of ["a", "ab"]) {
    for (const result of ["ok", "bad"]) counter.inc({ pod, namespace: "n", result });
  }
  counter.forget({ pod: "a", namespace: "n" });
  const left = parseExposition(await textOf(registry)).get("p_total")?.samples ?? [];
  assert.deepEqual(
    left.map(({ labels }) => labels["pod"]),
    ["ab", "ab"],
  );
});

test("what is read when asked; nothing known, nothing shown", async () => {
  const registry = new MetricRegistry();
  let pods = [1, 2];
  registry.read("pods", "gauge", "Pods", ["n"], () => pods.map((n) => [{ n: String(n) }, n * 10]));
  assert.equal(metricValue(parseExposition(await textOf(registry)), "pods", { n: "2" }), 20);
  pods = [];
  assert.equal(await textOf(registry), "");
});

test("a reset starts anew, and the same name can't be used twice", async () => {
  const registry = new MetricRegistry();
  registry.counter("a_total", "A").inc({}, 5);
  registry.counter("b_total", "B", ["x"]).inc({ x: "1" });
  registry.reset();
  const families = parseExposition(await textOf(registry));
  assert.equal(metricValue(families, "a_total"), 0);
  assert.equal(families.has("b_total"), false);
  assert.throws(() => registry.gauge("a_total", "A again"), /a_total is defined twice/);
});

test("a family whose labels come from outside can't fill the memory", async () => {
  const registry = new MetricRegistry();
  const counter = registry.counter("c_total", "C", ["x"]);
  for (let index = 0; index < 10_500; index++) counter.inc({ x: String(index) });
  assert.equal(parseExposition(await textOf(registry)).get("c_total")?.samples.length, 10_000);
});

test("numbers as readers expect them", () => {
  const cases = [0, 1.5, 1e21, 1e-7, -3, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
  assert.deepEqual(cases.map(numberText), ["0", "1.5", "1e+21", "1e-7", "-3", "+Inf", "-Inf", "NaN"]);
});

test("a large answer leaves in pieces", async () => {
  const registry = new MetricRegistry();
  for (let family = 0; family < 20; family++) {
    const gauge = registry.gauge(`family_${family}`, "F", ["x"]);
    for (let index = 0; index < 1000; index++) gauge.set({ x: `value-${index}` }, index);
  }
  const pieces: number[] = [];
  const target = new MetricText(async (piece) => void pieces.push(piece.length));
  await registry.write(target);
  await target.flush();
  assert.ok(pieces.length > 5 && pieces.every((length) => length < 128 * 1024), String(pieces));
});
