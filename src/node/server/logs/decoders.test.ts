import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { chooseDecoder, LogFormatError } from "./choose-decoder.ts";
import { CriDecoder } from "./cri-decoder.ts";
import type { LineFilter } from "./decoder.ts";
import { isBefore, parseMoment, TimeScanner } from "./line-time.ts";

const all: LineFilter = { since: undefined, timestamps: false, stream: "All" };

function decode(text: string, filter: Partial<LineFilter> = {}): string {
  const start = Buffer.from(text);
  const decoder = chooseDecoder(start, { ...all, ...filter });
  if (decoder === undefined) return "undecided";
  return decoder.decode(Buffer.from(text)).toString() + decoder.flush().toString();
}

const [t1, t2, t3] = ["2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:06+02:00"];

for (const [what, text, filter, expected] of [
  ["lines of both streams", `${t1} stdout F a\n${t2} stderr F b\n`, {}, "a\nb\n"],
  ["a partial line goes on in the next", `${t1} stdout P a\n${t2} stdout F b\n`, {}, "ab\n"],
  ["empty content", `${t1} stdout F \n${t2} stdout F b\n`, {}, "\nb\n"],
  ["more tags", `${t1} stdout F:x:y a\n`, {}, "a\n"],
  ["spaces in the content stay", `${t1} stdout F  a  b \n`, {}, " a  b \n"],
  ["a last line without end", `${t1} stdout F a\n${t2} stdout F b`, {}, "a\nb"],
  [
    "later lines of no format are skipped",
    `${t1} stdout F a\nrubbish\n${t2} stdout X c\n${t2} stdout F b\n`,
    {},
    "a\nb\n",
  ],
  ["a line of no stream is skipped", `${t1} stdout F a\n${t2} stdxyz F no\n${t2} stdout F b\n`, {}, "a\nb\n"],
  ["a short line is skipped", `${t1} stdout F a\n\nx\n${t2} stdout F b\n`, {}, "a\nb\n"],
  [
    "times have nine digits in their own zone",
    `${t1} stdout F a\n${t2} stdout F b\n${t3} stdout F c\n`,
    { timestamps: true },
    "2026-01-02T03:04:05.100000000Z a\n2026-01-02T03:04:05.123456789Z b\n2026-01-02T03:04:06.000000000+02:00 c\n",
  ],
  [
    "no time in the middle of a line",
    `${t1} stdout P a\n${t2} stdout F b\n${t2} stdout F c\n`,
    { timestamps: true },
    "2026-01-02T03:04:05.100000000Z ab\n2026-01-02T03:04:05.123456789Z c\n",
  ],
  ["one stream", `${t1} stdout F a\n${t2} stderr F b\n`, { stream: "Stderr" }, "b\n"],
  ["the other stream", `${t1} stdout F a\n${t2} stderr F b\n`, { stream: "Stdout" }, "a\n"],
  ["since keeps what is equal", `${t1} stdout F a\n${t2} stdout F b\n`, { since: parseMoment(t2) }, "b\n"],
  [
    "since minds zones",
    `${t3} stdout F early\n2026-01-02T03:04:06Z stdout F late\n`,
    { since: parseMoment("2026-01-02T03:00:00Z") },
    "late\n",
  ],
  [
    "since skips what has no time",
    `${t1} stdout F a\n2026-01-0xT03:04:05Z stdout F b\n`,
    { since: parseMoment(t1) },
    "a\n",
  ],
  [
    "Docker's lines",
    `{"log":"a\\n","stream":"stdout","time":"${t1}"}\nrubbish\n{"log":"b","stream":"stderr","time":"${t2}"}\n`,
    {},
    "a\nb",
  ],
  [
    "Docker's lines with times",
    `{"log":"a","stream":"stdout","time":"${t1}"}\n{"log":"b\\n","stream":"stdout","time":"${t2}"}\n{"log":"c\\n","stream":"stdout","time":"${t2}"}\n`,
    { timestamps: true },
    "2026-01-02T03:04:05.100000000Z ab\n2026-01-02T03:04:05.123456789Z c\n",
  ],
  [
    "Docker's lines since, of one stream, without a last end",
    `{"log":"a\\n","stream":"stdout","time":"${t1}"}\n{"log":"b\\n","stream":"stderr","time":"${t2}"}\n{"log":"c\\n","stream":"stdout","time":"${t2}"}`,
    { since: parseMoment(t2), stream: "Stdout" },
    "c\n",
  ],
  ["nothing yet", "2026-01-02T03:04", {}, "undecided"],
] as const) {
  test(`decoder: ${what}`, () => assert.equal(decode(text, filter), expected));
}

test("a file that is no log is refused with its first line", () =>
  assert.throws(
    () => decode("root:x:0:0\nmore\n"),
    new LogFormatError('failed to get parse function: unsupported log format: "root:x:0:0"'),
  ));

test("a head that never ends does not fill the memory", () => {
  const decoder = new CriDecoder(all);
  for (let index = 0; index < 100; index++) assert.equal(decoder.decode(Buffer.alloc(1000, "x")).length, 0);
  assert.equal(decoder.decode(Buffer.from(`\n${t1} stdout F a\n`)).toString(), "a\n");
});

const entry = fc.record({
  seconds: fc.integer({ min: 1_700_000_000, max: 1_700_000_003 }),
  fraction: fc.stringMatching(/^\d{0,9}$/),
  zone: fc.constantFrom("Z", "+02:00", "-11:30"),
  stream: fc.constantFrom("stdout", "stderr"),
  tag: fc.constantFrom("F", "P", "F:x", "P:y"),
  content: fc
    .uint8Array({ maxLength: 300 })
    .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 10 ? 11 : byte)))),
});

test("however a log is cut into pieces, it gives what was written", () => {
  const property = fc.property(
    fc.array(entry, { maxLength: 20 }),
    fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1, maxLength: 50 }),
    fc.boolean(),
    fc.option(fc.integer({ min: 1_700_000_000 - 50_000, max: 1_700_000_003 + 50_000 }), { nil: undefined }),
    (entries, cuts, timestamps, sinceSeconds) => {
      const since = sinceSeconds === undefined ? undefined : { seconds: sinceSeconds, nanos: 500_000_000 };
      const lines: Buffer[] = [];
      const expected: Buffer[] = [];
      const continues = new Map<string, boolean>();
      for (const { seconds, fraction, zone, stream, tag, content } of entries) {
        const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
        const time = `${whole}${fraction === "" ? "" : `.${fraction}`}${zone}`;
        lines.push(Buffer.from(`${time} ${stream} ${tag} `), content, Buffer.from("\n"));
        const moment = parseMoment(time);
        assert.ok(moment);
        if (since !== undefined && isBefore(moment, since)) continue;
        if (timestamps && !continues.get(stream)) {
          expected.push(Buffer.from(`${whole}.${fraction.padEnd(9, "0")}${zone} `));
        }
        continues.set(stream, tag.startsWith("P"));
        expected.push(content);
        if (tag.startsWith("F")) expected.push(Buffer.from("\n"));
      }
      const decoder = new CriDecoder({ since, timestamps, stream: "All" });
      const input = Buffer.concat(lines);
      const output: Buffer[] = [];
      for (let at = 0, cut = 0; at < input.length; cut++) {
        const length = cuts[cut % cuts.length] ?? 1;
        output.push(Buffer.from(decoder.decode(Buffer.from(input.subarray(at, at + length)))));
        at += length;
      }
      assert.deepEqual(Buffer.concat(output), Buffer.concat(expected));
    },
  );
  fc.assert(property, { numRuns: 300 });
});

for (const text of ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00", "2026-12-31T23:59:59.999999999-03:00"]) {
  test(`the scanner reads ${text} as the parser does, also again`, () => {
    const scanner = new TimeScanner();
    const bytes = Buffer.from(`..${text} `);
    for (let round = 0; round < 2; round++) {
      assert.equal(scanner.scan(bytes, 2, 2 + text.length), true);
      assert.deepEqual({ seconds: scanner.seconds, nanos: scanner.nanos }, parseMoment(text));
    }
  });
}
