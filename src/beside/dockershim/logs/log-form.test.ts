import assert from "node:assert/strict";
import { test } from "node:test";
import { criLine, isOld, lastWritten, parseEntry } from "./log-form.ts";

const at = "2024-01-01T00:00:00.5Z";

for (const { name, line, want } of [
  { name: "a whole line", line: `{"log":"a  b\\n","stream":"stdout","time":"${at}"}`, want: `${at} stdout F a  b\n` },
  { name: "a part of one", line: `{"log":"part","stream":"stderr","time":"${at}"}`, want: `${at} stderr P part\n` },
  { name: "an empty line", line: `{"log":"\\n","stream":"stdout","time":"${at}"}`, want: `${at} stdout F \n` },
  {
    name: "zeros that a full disk left",
    line: `\0\0\0{"log":"x\\n","stream":"stdout","time":"${at}"}`,
    want: `${at} stdout F x\n`,
  },
]) {
  test(`docker's log: ${name}`, () => {
    const entry = parseEntry(line);
    assert.ok(entry !== undefined);
    assert.equal(criLine(entry), want);
  });
}

for (const line of ["", "\0\0", "{", "7", '{"log":"x"}', '{"log":"x","stream":"stdout","time":"yesterday"}']) {
  test(`docker's log: ${JSON.stringify(line)} is no line`, () => assert.equal(parseEntry(line), undefined));
}

test("copying goes on after what was written last, also within a long line whose parts have one time", () => {
  const entry = (time: string, text: string) => ({ time, stream: "stdout" as const, text });
  const entries = [
    entry("2024-01-01T00:00:01Z", "a\n"),
    entry(at, "p1"),
    entry(at, "p2"),
    entry(at, "p3\n"),
    entry("2024-01-01T00:00:02Z", "z\n"),
  ];
  const rest = (lines: string[]) => {
    const last = lastWritten(lines);
    const seen = { count: 0 };
    return entries.filter((one) => last === undefined || !isOld(one, last, seen)).map(({ text }) => text);
  };
  assert.deepEqual(rest([]), ["a\n", "p1", "p2", "p3\n", "z\n"]);
  assert.deepEqual(rest([`${at} stdout P p1`]), ["p2", "p3\n", "z\n"]);
  assert.deepEqual(rest(["x stdout F other", `${at} stdout P p1`, `${at} stdout P p2`]), ["p3\n", "z\n"]);
});
