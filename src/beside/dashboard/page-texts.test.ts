import assert from "node:assert/strict";
import { test } from "node:test";
import { rangeOf, withPauses } from "./page/chart-data.ts";
import { cores, inBytes, longSpan, shortSpan } from "./page/format.ts";
import { inOrder, type LogLine, secondsOf } from "./page/log-order.ts";
import { readRefusal } from "./page/refused.ts";
import { madeVisible, parseVisible } from "./page/visible.ts";

for (const [text, shown] of [
  ["plain, with\nlines and\ttabs – and ümläuts 🎉", "plain, with\nlines and\ttabs – and ümläuts 🎉"],
  ["\u001b[31mred\u001b[0m", "^[[31mred^[[0m"],
  ["user\u202egnp.exe", "user⟨U+202E⟩gnp.exe"],
  ["a\u200bb\ufeffc", "a⟨U+200B⟩b⟨U+FEFF⟩c"],
  ["\u0000\u007f\u0085", "^@^?⟨U+0085⟩"],
  ["tag\u{e0041}", "tag⟨U+E0041⟩"],
] as const) {
  test(`what deceives is shown: ${JSON.stringify(text)}`, () => {
    assert.equal(madeVisible(text), shown);
    assert.deepEqual(parseVisible(JSON.stringify({ deep: [{ text }] })), { deep: [{ text: shown }] });
  });
}

test("why something was refused is shown as what it is, whoever says so", async () => {
  const said = JSON.stringify({ message: "there is no log of \u202eniam" });
  const { status, message } = await readRefusal(new Response(said, { status: 404 }));
  assert.deepEqual([status, message], [404, "there is no log of ⟨U+202E⟩niam"]);
  const other = new Response("<h1>Bad Gateway</h1>", { status: 502, statusText: "Bad Gateway" });
  assert.equal((await readRefusal(other)).message, "Bad Gateway");
});

test("what nobody has measured is no line", () => {
  const times = [0, 2_000, 60_000, 62_000];
  const { times: spread, columns } = withPauses({ times, columns: [[1, 2, 3, 4]] });
  assert.deepEqual([spread, columns], [[0, 2_000, 2_001, 60_000, 62_000], [[1, 2, null, 3, 4]]]);
  const steady = { times: [0, 2_000], columns: [[1, 2]] };
  assert.deepEqual(withPauses(steady), steady);
});

test("charts have room for everything, and steps that can be told apart", () => {
  const [, top] = rangeOf(0, 2.3);
  assert.ok(top > 2.3);
  assert.deepEqual(rangeOf(0, 0.0001, 0.002), [0, 0.002]);
  assert.deepEqual(rangeOf(0, 0), [0, 1]);
});

test("amounts and times as people write them", () => {
  assert.deepEqual([0, 512, 2048, 1.5 * 2 ** 30, 999 * 2 ** 20].map(inBytes), [
    "0 B",
    "512 B",
    "2.0 KiB",
    "1.5 GiB",
    "999 MiB",
  ]);
  assert.deepEqual([0, 0.0123, 0.5, 1.25, 24].map(cores), ["0", "12m", "500m", "1.25", "24.0"]);
  assert.deepEqual([0, 350, 4200, 42_000].map(shortSpan), ["0 ms", "350 ms", "4.2 s", "42 s"]);
  assert.deepEqual([90_000, 600_000, 2 * 3_600_000, 3 * 3_600_000 + 720_000, 50 * 3_600_000].map(longSpan), [
    "90 s",
    "10 min",
    "2 h",
    "3 h 12 min",
    "2 d 2 h",
  ]);
  assert.deepEqual([null, undefined].map(inBytes), ["–", "–"]);
});

test("lines of several containers stand as they were written", () => {
  const line = (number: number, time: string): LogLine => ({
    ...{ number, container: 0, time, text: "", at: secondsOf(time) ?? 0 },
  });
  const times = ["10:00:00.5Z", "10:00:02Z", "10:00:00.51Z", "10:00:00Z"].map((time) => `2026-11-17T${time}`);
  assert.deepEqual(
    inOrder(times.map((time, number) => line(number, time))).map(({ number }) => number),
    [3, 0, 2, 1],
  );
  assert.equal(secondsOf("2026-11-17T12:00:00.25+02:00"), Date.UTC(2026, 10, 17, 10) / 1000 + 0.25);
  assert.equal(secondsOf("yesterday"), undefined);
});
