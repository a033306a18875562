import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { configOf, loadFile } from "../../../../test/support/load-config.ts";
import { formatDuration } from "../../base/index.ts";
import { durationOf } from "./duration-text.ts";
import { parseEvictionThreshold, parseMinimumReclaim } from "./eviction-text.ts";
import { parseBool, parseCsvRecord, parseInteger, TextError } from "./go-text.ts";
import { labelValueProblems, qualifiedNameProblems } from "./label-syntax.ts";
import { nearest } from "./nearest.ts";
import { reservedResources } from "./reserved.ts";

for (const [text, ms, shown] of [
  ["0", 0, "0s"],
  ["+5s", 5_000, "5s"],
  ["-1.5h", -5_400_000, "-1h30m0s"],
  ["1m30s", 90_000, "1m30s"],
  ["100ms", 100, "100ms"],
  ["1.5s", 1_500, "1.5s"],
  [".5s", 500, "500ms"],
  ["1.s", 1_000, "1s"],
  ["1ns", 0.000001, "1ns"],
  ["1500us", 1.5, "1.5ms"],
  ["2µs", 0.002, "2µs"],
  ["2h45m", 9_900_000, "2h45m0s"],
  ["1h1h", 7_200_000, "2h0m0s"],
  ["2562047h", 9_223_369_200_000, "2562047h0m0s"],
] as const) {
  test(`duration ${text}`, () => {
    assert.equal(durationOf(text), ms);
    assert.equal(formatDuration(ms), shown);
  });
}

for (const [text, message] of [
  ["", 'time: invalid duration ""'],
  ["-", 'time: invalid duration "-"'],
  ["x", 'time: invalid duration "x"'],
  [".s", 'time: invalid duration ".s"'],
  ["5", 'time: missing unit in duration "5"'],
  ["1s5", 'time: missing unit in duration "1s5"'],
  ["5d", 'time: unknown unit "d" in duration "5d"'],
  ["5constructor", 'time: unknown unit "constructor" in duration "5constructor"'],
  ["2562048h", 'time: invalid duration "2562048h"'],
] as const) {
  test(`duration ${text} is refused`, () => assert.throws(() => durationOf(text), new TextError(message)));
}

test("a duration that is printed reads back", () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 40), max: 2 ** 40 }), (ms) => durationOf(formatDuration(ms)) === ms),
    { numRuns: 300 },
  );
});

for (const [text, value] of [
  ["0", 0],
  ["-0x1F", -31],
  ["0b101", 5],
  ["0o17", 15],
  ["017", 15],
  ["1_000", 1000],
  ["+7", 7],
  ["2147483647", 2147483647],
] as const) {
  test(`integer ${text}`, () => assert.equal(parseInteger(text, 32), value));
}

for (const text of ["", "-", "1.5", "1e3", "0x", "1__0", "_1", "1_", "09", "2147483648", "١"]) {
  test(`integer ${JSON.stringify(text)} is refused`, () => assert.throws(() => parseInteger(text, 32), TextError));
}

test("booleans as Go reads them", () => {
  assert.deepEqual(["1", "t", "TRUE", "True", "0", "F", "false"].map(parseBool), [
    true,
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
  for (const text of ["yes", "tRUE", "", "2"]) assert.throws(() => parseBool(text), TextError);
});

for (const [text, fields] of [
  ["", []],
  ["a", ["a"]],
  ["a,,b", ["a", "", "b"]],
  ["a,", ["a", ""]],
  ['"a,b",c', ["a,b", "c"]],
  ['"a""b"', ['a"b']],
  ['"a",', ["a", ""]],
  ["a\nb", ["a"]],
] as const) {
  test(`record ${JSON.stringify(text)}`, () => assert.deepEqual(parseCsvRecord(text), fields));
}

test("label keys and values", () => {
  for (const key of ["a", "A-b_c.d", "example.com/a", "a".repeat(63)]) assert.deepEqual(qualifiedNameProblems(key), []);
  for (const key of ["", "-a", "a-", "a b", "a/b/c", "/a", "A.com/a", "a".repeat(64), "a/"])
    assert.notDeepEqual(qualifiedNameProblems(key), []);
  for (const value of ["", "a", "A-b_c.d"]) assert.deepEqual(labelValueProblems(value), []);
  for (const value of ["-", "a b", "a/b", "a".repeat(64)]) assert.notDeepEqual(labelValueProblems(value), []);
});

test("the nearest name is close, or none", () => {
  const names = ["maxPods", "maxOpenFiles", "podsPerCore"];
  assert.deepEqual(
    ["maxpods", "maxPdos", "maxPod", "axPods", "somethingElse", ""].map((name) => nearest(name, names)),
    ["maxPods", "maxPods", "maxPods", "maxPods", undefined, undefined],
  );
});

test("eviction thresholds", () => {
  assert.deepEqual(parseEvictionThreshold("12.5%"), { fraction: 0.125 });
  assert.deepEqual(parseEvictionThreshold("1Ki"), { quantity: 1_024_000_000_000n });
  assert.deepEqual([parseEvictionThreshold("0%"), parseEvictionThreshold("100%")], ["off", "off"]);
  assert.deepEqual(parseMinimumReclaim("0"), { quantity: 0n });
  for (const text of ["-1%", "100.1%", "0", "-1", "x", "%", ""])
    assert.throws(() => parseEvictionThreshold(text), TextError);
  for (const text of ["-1", "0%", "-5%", "x", "1e400%"]) assert.throws(() => parseMinimumReclaim(text), TextError);
});

test("CPUs reserved by number take the place of the amounts", async () => {
  const reserved = async (yaml: string) => reservedResources(configOf(await loadFile(yaml)).kubelet);
  const unit = 1_000_000_000n;
  assert.deepEqual(
    await reserved("systemReserved: {cpu: 500m}\nkubeReserved: {cpu: 1, pid: '7'}".replace("1,", "'1',")),
    {
      system: { cpu: unit / 2n },
      kube: { cpu: unit, pid: 7n * unit },
      cpus: [],
    },
  );
  assert.deepEqual(
    await reserved("systemReserved: {cpu: 500m}\nkubeReserved: {cpu: '1', pid: '7'}\nreservedSystemCPUs: 0-1"),
    {
      system: { cpu: 2n * unit },
      kube: { pid: 7n * unit },
      cpus: [0, 1],
    },
  );
});
