import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageError } from "./io.ts";
import { readWords } from "./read-words.ts";
import type { CommandDescription } from "./table/description.ts";

const fetchDescription = {
  name: "fetch",
  group: "nodelet",
  summary: "fetch",
  description: "Fetches.",
  operands: [
    { name: "FROM", means: "where from", presence: "required" },
    { name: "TO", means: "where to", presence: "optional" },
  ],
  options: {
    all: { type: "flag", short: "a", means: "all" },
    quick: { type: "flag", short: "q", means: "quickly" },
    name: { type: "text", short: "n", value: "NAME", means: "a name" },
    label: { type: "texts", value: "LABEL", means: "labels" },
    form: { type: "choice", values: ["long", "short"], default: "long", means: "which" },
    tail: { type: "count", value: "LINES", means: "lines" },
    most: { type: "count", value: "LINES", orAll: true, means: "lines" },
    wait: { type: "time", value: "TIME", default: "5", means: "how long" },
  },
  examples: [],
} as const satisfies CommandDescription;

const agentDescription = {
  name: "show",
  group: "nodelet",
  summary: "show",
  description: "Shows.",
  options: {
    check: { type: "flag", means: "check" },
    form: { type: "text", short: "f", value: "FORM", means: "form" },
  },
  takesAgentFlags: true,
  examples: [],
} as const satisfies CommandDescription;

const none = {
  ...{ all: false, quick: false, name: undefined, label: [] as readonly string[], form: "long" },
  ...{ tail: undefined, most: undefined, wait: 5000 },
};

for (const { words, options = {}, operands = ["a"] } of [
  { words: ["a"] },
  { words: ["a", "b"], operands: ["a", "b"] },
  { words: ["-aq", "a"], options: { all: true, quick: true } },
  { words: ["a", "--name", "x", "--name=y"], options: { name: "y" } },
  { words: ["a", "-n", "x"], options: { name: "x" } },
  { words: ["a", "--name=-x"], options: { name: "-x" } },
  { words: ["a", "--name="], options: { name: "" } },
  { words: ["a", "--label", "1", "--label", "2"], options: { label: ["1", "2"] } },
  { words: ["a", "--form", "short"], options: { form: "short" } },
  { words: ["a", "--tail", "0"], options: { tail: 0 } },
  { words: ["a", "--most", "-1"] },
  { words: ["a", "--most=-1"] },
  { words: ["a", "--most", "3"], options: { most: 3 } },
  { words: ["a", "--wait", "1.5"], options: { wait: 1500 } },
  { words: ["a", "--wait", "2m"], options: { wait: 120_000 } },
]) {
  test(`fetch ${words.join(" ")}`, () => {
    assert.deepEqual(readWords(fetchDescription, words), { options: { ...none, ...options }, operands, rest: [] });
  });
}

for (const { words, says } of [
  { words: [], says: "FROM is missing: where from" },
  { words: ["a", "b", "c"], says: '"nodelet fetch" takes 2 words, found a b c' },
  { words: ["a", "--nmae", "x"], says: "there is no option --nmae; did you mean --name?" },
  { words: ["a", "--lab"], says: "there is no option --lab; did you mean --label?" },
  { words: ["a", "--xyzzy"], says: "there is no option --xyzzy" },
  { words: ["a", "--constructor"], says: "there is no option --constructor" },
  { words: ["a", "-z"], says: "there is no option -z" },
  { words: ["a", "--name"], says: "--name wants a value: NAME" },
  { words: ["a", "--name", "--all"], says: "--name wants a value: NAME" },
  { words: ["a", "--all=yes"], says: '--all takes no value, found "yes"' },
  { words: ["a", "--form", "wide"], says: '--form wants long or short, found "wide"' },
  { words: ["a", "--tail", "-1"], says: "--tail wants a value: LINES" },
  { words: ["a", "--tail=-1"], says: '--tail wants a whole number, found "-1"' },
  { words: ["a", "--most", "-2"], says: "--most wants a value: LINES" },
  { words: ["a", "--tail", "1e3"], says: '--tail wants a whole number, found "1e3"' },
  { words: ["a", "--wait", "soon"], says: '--wait wants a number of seconds, or a duration such as 5m, found "soon"' },
  { words: ["a", "--wait=-5"], says: '--wait wants a number of seconds, or a duration such as 5m, found "-5"' },
]) {
  test(`fetch ${words.join(" ")}: ${says}`, () => {
    assert.throws(
      () => readWords(fetchDescription, words),
      (error) => error instanceof UsageError && error.message === says,
    );
  });
}

for (const words of [["--help"], ["-h"], ["a", "b", "--help"]]) {
  test(`fetch ${words.join(" ")} asks for help`, () => assert.equal(readWords(fetchDescription, words), "help"));
}

test("what follows -- is passed on by those who do so, and refused by the others", () => {
  const passing = { ...fetchDescription, passesOn: "COMMAND" } as const;
  assert.deepEqual(readWords(passing, ["a", "--", "-x", "--help"]), {
    ...{ options: none, operands: ["a"], rest: ["-x", "--help"] },
  });
  assert.throws(() => readWords(passing, ["a"]), { message: "COMMAND is missing: give it after --" });
  assert.throws(() => readWords(fetchDescription, ["a", "--", "b"]), /takes nothing after --, found b/);
});

test("flags of the agent are left to it", () => {
  const words = ["--config", "x", "--check", "--v=2", "-f", "json", "--feature-gates=A=true"];
  assert.deepEqual(readWords(agentDescription, words), {
    options: { check: true, form: "json" },
    operands: [],
    rest: ["--config", "x", "--v=2", "--feature-gates=A=true"],
  });
});
