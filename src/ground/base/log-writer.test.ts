import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { explain } from "./errors.ts";
import type { LogFields } from "./log.ts";
import { formatJson, formatText, type LogRecord } from "./log-format.ts";
import { LogLevels } from "./log-levels.ts";
import type { WriteBytes } from "./log-stream.ts";
import { defaultLogSettings, type LogSettings, LogWriter } from "./log-writer.ts";

const at = new Date(2026, 10, 5, 7, 8, 9, 42).getTime();

function record(changes: Partial<LogRecord>): LogRecord {
  const empty = { severity: "info", at, verbosity: 0, component: "agent", message: "m", error: undefined } as const;
  return { ...empty, fields: undefined, ...changes };
}

test("text: klog's header with local time, a pid of width 7 and the component as file", () => {
  assert.equal(formatText(record({}), 12345), 'I1105 07:08:09.042000   12345 agent:0] "m"\n');
  assert.equal(formatText(record({}), 12345678), 'I1105 07:08:09.042000 12345678 agent:0] "m"\n');
});

for (const [severity, letter] of [
  ["info", "I"],
  ["warning", "W"],
  ["error", "E"],
  ["fatal", "F"],
] as const) {
  test(`text: ${severity} begins with ${letter}`, () =>
    assert.equal(formatText(record({ severity }), 1).slice(0, 5), `${letter}1105`));
}

function textOf(fields: LogFields): string {
  const line = formatText(record({ fields }), 1);
  return line.slice(line.indexOf('"m"') + 4, -1);
}

const circular: Record<string, unknown> = {};
circular["self"] = circular;

for (const [name, fields, expected] of [
  ["string", { a: "b c" }, 'a="b c"'],
  ["empty string", { a: "" }, 'a=""'],
  ["quotes and backslashes", { a: 'say "x" \\ y' }, 'a="say \\"x\\" \\\\ y"'],
  ["tab, bell, escape, delete", { a: "\t\x07\x1b\x7f" }, 'a="\\t\\a\\x1b\\x7f"'],
  ["visible beyond ASCII", { a: "grün 日本 😀" }, 'a="grün 日本 😀"'],
  ["invisible beyond ASCII", { a: "a\u200bb\u00a0c" }, 'a="a\\u200bb\\u00a0c"'],
  ["half a surrogate pair", { a: "x\ud800" }, 'a="x\ufffd"'],
  ["several lines", { a: "one\ntwo" }, "a=<\n\tone\n\ttwo\n >"],
  ["several lines with a break at the end", { a: "one\ntwo\n" }, "a=<\n\tone\n\ttwo\n >"],
  ["an escape sequence within lines", { a: "one\n\x1b[2Jtwo\r" }, "a=<\n\tone\n\t\\x1b[2Jtwo\\r\n >"],
  ["number", { a: 1.5 }, "a=1.5"],
  ["not a number", { a: Number.NaN }, 'a="NaN"'],
  ["boolean", { a: false }, "a=false"],
  ["null", { a: null }, "a=null"],
  ["undefined is left out", { a: undefined, b: 1 }, "b=1"],
  ["bigint", { a: 12n }, "a=12"],
  ["huge bigint", { a: 2n ** 64n }, 'a="18446744073709551616"'],
  ["list", { a: ["x", 1] }, 'a=["x",1]'],
  ["nested object", { a: { b: { c: [true] } } }, 'a={"b":{"c":[true]}}'],
  ["map and set", { a: new Map([["k", new Set([1])]]) }, 'a={"k":[1]}'],
  ["date", { a: new Date(0) }, 'a="1970-01-01T00:00:00.000Z"'],
  ["bytes", { a: Buffer.from("hi\n") }, 'a="hi\\n"'],
  ["error", { a: new Error("bad", { cause: new Error("deep") }) }, 'a="bad: deep"'],
  ["error in an object", { a: { e: new Error("bad") } }, 'a={"e":"bad"}'],
  ["function", { a: { f: Symbol("s") } }, 'a={"f":"Symbol(s)"}'],
  [
    "secret by name",
    { token: "abc", bearer_token: "d", Password: "e" },
    allMasked("token", "bearer_token", "Password"),
  ],
  ["secret in an object", { a: { auth: "abc", user: "u" } }, 'a={"auth":"<masked>","user":"u"}'],
  [
    "an object of such a name is looked into",
    { a: { auth: { mode: "x", token: "y" } } },
    'a={"auth":{"mode":"x","token":"<masked>"}}',
  ],
  ["a list of such a name", { a: { Authorization: ["x"] } }, 'a={"Authorization":"<masked>"}'],
  ["the name of a Secret object is none", { secret: "default/creds" }, 'secret="default/creds"'],
  ["password in a URL", { url: "http://me:pw@host/x" }, 'url="http://me:<masked>@host/x"'],
  ["bearer in a text", { a: "Authorization: Bearer abcdefgh.i1" }, 'a="Authorization: Bearer <masked>"'],
  ["prose is no credential", { a: "basic authentication" }, 'a="basic authentication"'],
] as const satisfies readonly (readonly [string, LogFields, string])[]) {
  test(`text value: ${name}`, () => assert.equal(textOf(fields), expected));
}

function allMasked(...names: readonly string[]): string {
  return names.map((name) => `${name}="<masked>"`).join(" ");
}

test("text value: what cannot be written says so instead of failing", () => {
  assert.match(textOf({ a: circular }), /^a="<internal error: .*circular/);
});

test("text: the error comes first, with its causes, as a block when it has several lines", () => {
  const error = { value: new Error("cannot start", { cause: new Error("one\ntwo") }) };
  const line = formatText(record({ severity: "error", error, fields: { pod: "a/b" } }), 1);
  assert.equal(line.slice(line.indexOf('"m"')), '"m" err=<\n\tcannot start: one\n\ttwo\n > pod="a/b"\n');
});

for (const [name, changes, expected] of [
  ["info", { fields: { pod: "a/b" } }, { ts: at, caller: "agent:0", msg: "m", v: 0, pod: "a/b" }],
  ["debug", { verbosity: 4 }, { ts: at, caller: "agent:0", msg: "m", v: 4 }],
  ["warning", { severity: "warning" }, { ts: at, caller: "agent:0", msg: "m", v: 0, severity: "warning" }],
  ["error", { severity: "error", error: { value: "x" } }, { ts: at, caller: "agent:0", msg: "m", err: "x" }],
  [
    "field of a reserved name",
    { fields: { msg: "other", n: 2n } },
    { ts: at, caller: "agent:0", msg: "m", v: 0, n: 2 },
  ],
  ["secret", { fields: { token: "t" } }, { ts: at, caller: "agent:0", msg: "m", v: 0, token: "<masked>" }],
] as const satisfies readonly (readonly [string, Partial<LogRecord>, object])[]) {
  test(`json: ${name}`, () => {
    const line = formatJson(record(changes), 1);
    assert.equal(line.endsWith("}\n"), true);
    assert.deepEqual(JSON.parse(line), expected);
  });
}

for (const { verbosity, vmodule, component, level, shown } of [
  { verbosity: 0, vmodule: "", component: "cri", level: 0, shown: true },
  { verbosity: 0, vmodule: "", component: "cri", level: 1, shown: false },
  { verbosity: 2, vmodule: "cri=5", component: "cri", level: 5, shown: true },
  { verbosity: 2, vmodule: "cri=5", component: "crio", level: 5, shown: false },
  { verbosity: 2, vmodule: "c*=3", component: "cri", level: 3, shown: true },
  { verbosity: 2, vmodule: "c?i=3", component: "cri", level: 3, shown: true },
  { verbosity: 2, vmodule: "[a-d]ri=3", component: "cri", level: 3, shown: true },
  { verbosity: 2, vmodule: "[^a-d]ri=3", component: "cri", level: 3, shown: false },
  { verbosity: 2, vmodule: "a.b=3", component: "axb", level: 3, shown: false },
  { verbosity: 4, vmodule: "cri=1", component: "cri", level: 4, shown: true },
  { verbosity: 0, vmodule: "c*=1;cri=9", component: "cri", level: 5, shown: false },
  { verbosity: 0, vmodule: "[z=9", component: "cri", level: 1, shown: false },
]) {
  test(`-v=${verbosity} vmodule ${vmodule || "none"}: ${component} at ${level} is ${shown ? "shown" : "hidden"}`, () => {
    const rules = vmodule.split(";").filter((rule) => rule !== "");
    const parsed = rules.map((rule) => {
      const [filePattern = "", number] = rule.split("=");
      return { filePattern, verbosity: Number(number) };
    });
    assert.equal(new LogLevels(verbosity, parsed).shows(component, level), shown);
  });
}

/** A reader that can stall, take little at a time, or be gone. */
class Reader {
  text = "";
  writes = 0;
  mode: "reads" | "stalls" | "full" | "gone" | "sips" = "reads";
  #waiting: (() => void)[] = [];
  readonly write: WriteBytes = (bytes, done) => {
    const attempt = (): void => {
      if (this.mode === "stalls") {
        this.#waiting.push(attempt);
        return;
      }
      this.writes++;
      const taken = this.mode === "sips" ? bytes.subarray(0, 3) : bytes;
      if (this.mode === "full") done({ code: "EAGAIN" }, 0);
      else if (this.mode === "gone") done({ code: "EPIPE" }, 0);
      else {
        this.text += Buffer.from(taken).toString();
        done(null, taken.length);
      }
    };
    setImmediate(attempt);
  };
  resume(): void {
    this.mode = "reads";
    for (const attempt of this.#waiting.splice(0)) attempt();
  }
}

function setUp(settings: Partial<LogSettings> = {}) {
  const clock = new FakeClock();
  const stdout = new Reader();
  const stderr = new Reader();
  const outlet = { clock, pid: 7, stdout: stdout.write, stderr: stderr.write };
  const writer = new LogWriter(outlet, { ...defaultLogSettings, ...settings });
  return { clock, stdout, stderr, writer, log: writer.logger("test") };
}

test("lines of one turn leave in one write, in order", async () => {
  const { stderr, stdout, writer, log } = setUp();
  log.info("one");
  log.warn("two");
  log.error("three", new Error("why"));
  await writer.flush();
  assert.equal(stderr.writes, 1);
  assert.match(stderr.text, /^I.*"one"\nW.*"two"\nE.*"three" err="why"\n$/);
  assert.equal(stdout.text, "");
});

test("lines leave by themselves, without a flush", async () => {
  const { stderr, log } = setUp();
  log.info("one");
  await settle();
  assert.match(stderr.text, /"one"/);
});

test("the verbosity can change at run time, also for loggers handed out before", async () => {
  const { stderr, writer, log } = setUp();
  log.debug(4, "hidden");
  writer.verbosity = 4;
  log.debug(4, "shown");
  log.named("other").debug(4, "shown too");
  writer.verbosity = 0;
  log.debug(4, "hidden again");
  await writer.flush();
  assert.doesNotMatch(stderr.text, /hidden/);
  assert.match(stderr.text, /test:0\] "shown"\n.*other:0\] "shown too"/);
});

for (const format of ["text", "json"] as const) {
  test(`${format} split streams: errors to stderr, the rest to stdout`, async () => {
    const { stdout, stderr, writer, log } = setUp({ format, splitStream: true });
    log.info("calm");
    log.warn("odd");
    log.error("bad", "x");
    await writer.flush();
    assert.match(stdout.text, /calm[\s\S]*odd/);
    assert.doesNotMatch(stdout.text, /bad/);
    assert.match(stderr.text, /bad/);
    assert.doesNotMatch(stderr.text, /calm|odd/);
  });
}

test("an info buffer waits for the flush frequency, or until it is full; errors never wait", async () => {
  const { clock, stdout, stderr, log } = setUp({ splitStream: true, infoBufferBytes: 200, flushFrequencyMs: 5_000 });
  log.info("first");
  log.error("bad", "x");
  await clock.advance(4_999);
  assert.equal(stdout.text, "");
  assert.match(stderr.text, /bad/);
  await clock.advance(1);
  assert.match(stdout.text, /first/);
  log.info("x".repeat(200));
  await settle();
  assert.match(stdout.text, /xxx/);
  assert.equal(clock.pendingTimers, 0);
});

test("another flush frequency counts at once, also for lines that wait", async () => {
  const buffered = { ...defaultLogSettings, splitStream: true, infoBufferBytes: 1_000 };
  const { clock, stdout, writer, log } = setUp({ ...buffered, flushFrequencyMs: 3_600_000 });
  log.info("first");
  writer.configure({ ...buffered, flushFrequencyMs: 1_000 });
  await clock.advance(1_000);
  assert.match(stdout.text, /first/);
});

test("a stalled reader blocks nobody; what exceeds the queue is dropped and counted once it reads again", async () => {
  const { clock, stderr, writer, log } = setUp();
  stderr.mode = "stalls";
  log.info("first");
  await settle();
  await clock.advance(120_000);
  assert.equal(writer.stalledMs, 120_000);
  for (let line = 0; line < 5; line++) log.info("y".repeat(1024 * 1024));
  stderr.resume();
  await writer.flush();
  assert.equal(writer.stalledMs, 0);
  log.info("after");
  await writer.flush();
  assert.match(stderr.text, /"first"/);
  assert.match(stderr.text, /log:0\] "Log lines were dropped because their reader stalled" lines=2\n.*"after"\n$/);
});

test("a full pipe is tried again, a partial write is continued", async () => {
  const { clock, stderr, writer, log } = setUp();
  stderr.mode = "full";
  log.info("first");
  await clock.advance(100);
  assert.equal(stderr.text, "");
  stderr.mode = "sips";
  await clock.advance(10);
  await writer.flush();
  assert.match(stderr.text, /^I.*"first"\n$/);
});

test("a reader that is gone does not stop the agent", async () => {
  const { stderr, writer, log } = setUp();
  stderr.mode = "gone";
  log.info("lost");
  await writer.flush();
  stderr.mode = "reads";
  log.info("kept");
  await writer.flush();
  assert.match(stderr.text, /^I.*"kept"\n$/);
});

test("plain text keeps its place among the lines", async () => {
  const { stderr, writer, log } = setUp({ format: "json", splitStream: true });
  log.error("before", "x");
  writer.plain("Flag --x has been deprecated\n");
  log.error("after", "x");
  await writer.flush();
  assert.match(stderr.text, /^\{.*before.*\}\nFlag --x has been deprecated\n\{.*after.*\}\n$/);
});

test("fatal lines begin with F", async () => {
  const { stderr, writer } = setUp();
  writer.fatal("gone wrong", new TypeError("x is not a function"));
  await writer.flush();
  assert.match(stderr.text, /^F.* main:0\] "gone wrong" err="x is not a function"\n$/);
});

for (const [name, error, expected] of [
  ["plain", new Error("a"), "a"],
  ["not an error", "text", "text"],
  ["causes", new Error("a", { cause: new Error("b", { cause: new Error("c") }) }), "a: b: c"],
  ["cause already quoted", new Error("a: b", { cause: new Error("b") }), "a: b"],
  ["aggregate", new AggregateError([new Error("x"), new Error("y")], "both failed"), "both failed; x; y"],
  ["aggregate without words", new AggregateError([new Error("x")]), "x"],
] as const) {
  test(`explain: ${name}`, () => assert.equal(explain(error), expected));
}

test("explain: a cause that points back ends", () => {
  const error = new Error("a");
  error.cause = new Error("b", { cause: error });
  assert.equal(explain(error), "a: b");
});
