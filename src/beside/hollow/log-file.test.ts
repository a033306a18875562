import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { LogFile, rfc3339 } from "./log-file.ts";

function makeLog(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), "hollow-log-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "0.log");
  const log = new LogFile(path, () => 1_500_000_000_000_000_000n);
  log.open();
  return { directory, path, log, read: () => readFileSync(path, "utf8") };
}

for (const [nanoseconds, text] of [
  [1_500_000_000_000_000_000n, "2017-07-14T02:40:00Z"],
  [1_500_000_000_120_000_000n, "2017-07-14T02:40:00.12Z"],
  [1_500_000_000_000_000_001n, "2017-07-14T02:40:00.000000001Z"],
] as const) {
  test(`time ${text}`, () => assert.equal(rfc3339(nanoseconds), text));
}

test("lines are written when they end, the streams apart; the rest is partial at the end", (t) => {
  const { log, read } = makeLog(t);
  const time = "2017-07-14T02:40:00Z";
  log.print("stdout", "one\ntw");
  log.print("stderr", "oops\n");
  assert.equal(read(), `${time} stdout F one\n${time} stderr F oops\n`);
  log.print("stdout", "o\nrest");
  log.close();
  assert.equal(read(), `${time} stdout F one\n${time} stderr F oops\n${time} stdout F two\n${time} stdout P rest\n`);
});

test("a long line is cut at 16384 bytes", (t) => {
  const { log, read } = makeLog(t);
  log.print("stdout", `${"x".repeat(16_385)}\n`);
  const [first, second] = read().split("\n");
  assert.match(first ?? "", / stdout P x{16384}$/);
  assert.match(second ?? "", / stdout F x$/);
});

test("after opening again, lines go to the new file", (t) => {
  const { path, log, read } = makeLog(t);
  log.print("stdout", "old\n");
  renameSync(path, `${path}.1`);
  log.print("stdout", "still old\n");
  log.open();
  log.print("stdout", "new\n");
  assert.match(read(), /^\S+ stdout F new\n$/);
  assert.match(readFileSync(`${path}.1`, "utf8"), /F old\n.*F still old\n$/s);
});

test("without its directory nothing is written and nothing fails", (t) => {
  const { directory } = makeLog(t);
  const log = new LogFile(join(directory, "absent", "0.log"), () => 1n);
  log.open();
  assert.doesNotThrow(() => log.print("stdout", "x\n"));
  log.close();
});
