import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { FakeClock, settle, settleFiles } from "../../../test/support/fake-clock.ts";
import { until } from "../../../test/support/until.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { LogRotation } from "./log-rotation.ts";
import { rotateLog } from "./log-rotation-files.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-rotation-"));
after(() => rmSync(directory, { recursive: true, force: true }));

let count = 0;
/** A container's log directory and a runtime that writes to it. */
class Container {
  readonly id = `c${count++}`;
  readonly directory = join(directory, this.id);
  readonly logPath = join(this.directory, "0.log");
  reopened = 0;
  refusal: Error | undefined;
  constructor(text = "") {
    mkdirSync(this.directory);
    writeFileSync(this.logPath, text);
  }
  write(text: string): void {
    appendFileSync(this.logPath, text);
  }
  reopen = async (): Promise<void> => {
    this.reopened++;
    if (this.refusal !== undefined) throw this.refusal;
    appendFileSync(this.logPath, "");
  };
  files(): readonly string[] {
    return readdirSync(this.directory).sort();
  }
}

const at = (second: number): Date => new Date(2026, 0, 2, 3, 4, second);
const never = new AbortController().signal;

test("the newest file set aside stays plain, older ones are compressed, the oldest go", async () => {
  const box = new Container("0\n");
  for (let round = 1; round <= 5; round++) {
    await rotateLog({ path: box.logPath, maxFiles: 4, now: at(round), reopen: box.reopen }, never);
    box.write(`${round}\n`);
  }
  assert.deepEqual(box.files(), [
    "0.log",
    "0.log.20260102-030403.gz",
    "0.log.20260102-030404.gz",
    "0.log.20260102-030405",
  ]);
  const read = (name: string): Buffer => readFileSync(join(box.directory, name));
  assert.equal(read("0.log").toString(), "5\n");
  assert.equal(read("0.log.20260102-030405").toString(), "4\n");
  assert.equal(gunzipSync(read("0.log.20260102-030403.gz")).toString(), "2\n");
});

test("two files are the live one and one set aside", async () => {
  const box = new Container("a");
  for (let round = 1; round <= 3; round++) {
    await rotateLog({ path: box.logPath, maxFiles: 2, now: at(round), reopen: box.reopen }, never);
  }
  assert.deepEqual(box.files(), ["0.log", "0.log.20260102-030403"]);
});

test("compression keeps mode and time; leftovers of an interrupted one are cleared away", async () => {
  const box = new Container("now");
  const old = join(box.directory, "0.log.20260101-000000");
  writeFileSync(old, "old", { mode: 0o640 });
  const { mtimeMs } = statSync(old);
  writeFileSync(`${old}.tmp`, "half");
  writeFileSync(join(box.directory, "0.log.20251231-000000"), "older");
  writeFileSync(join(box.directory, "0.log.20251231-000000.gz"), gzipSync("older"));
  writeFileSync(join(box.directory, "0.log.note"), "not ours");
  await rotateLog({ path: box.logPath, maxFiles: 9, now: at(1), reopen: box.reopen }, never);
  assert.deepEqual(box.files(), [
    "0.log",
    "0.log.20251231-000000.gz",
    "0.log.20260101-000000.gz",
    "0.log.20260102-030401",
    "0.log.note",
  ]);
  const packed = statSync(`${old}.gz`);
  assert.equal(packed.mode & 0o777, 0o640);
  assert.ok(Math.abs(packed.mtimeMs - mtimeMs) < 10);
});

test("attack: a link among the files set aside is taken away, and nothing behind it is copied", async () => {
  const box = new Container("0\n");
  const secret = join(directory, "of-the-node");
  writeFileSync(secret, "not for pods");
  symlinkSync(secret, `${box.logPath}.20260102-030400`);
  await rotateLog({ path: box.logPath, maxFiles: 5, now: at(1), reopen: box.reopen }, never);
  assert.deepEqual(box.files(), ["0.log", "0.log.20260102-030401"]);
  assert.equal(readFileSync(secret, "utf8"), "not for pods");
});

test("attack: a pipe or a directory among the files set aside holds nobody up, and is taken away", async () => {
  const box = new Container("text");
  execFileSync("mkfifo", [`${box.logPath}.20260102-030400`]);
  mkdirSync(`${box.logPath}.20260102-030401`);
  mkdirSync(`${box.logPath}.20260102-030402.tmp`);
  await rotateLog({ path: box.logPath, maxFiles: 5, now: at(5), reopen: box.reopen }, never);
  assert.deepEqual(box.files(), ["0.log", "0.log.20260102-030405"]);
});

test("when the runtime does not reopen the log, it keeps its name", async () => {
  const box = new Container("text");
  box.refusal = new Error("no");
  const rotation = rotateLog({ path: box.logPath, maxFiles: 5, now: at(1), reopen: box.reopen }, never);
  await assert.rejects(rotation, /does not reopen the log/);
  assert.deepEqual(box.files(), ["0.log"]);
  assert.equal(readFileSync(box.logPath, "utf8"), "text");
});

const settings = { maxBytes: 10, maxFiles: 3, workers: 2, intervalMs: 10_000 };

function start(scope: TaskScope, boxes: Container[], overrides: Partial<typeof settings> = {}) {
  const clock = new FakeClock();
  const errors: string[] = [];
  const rotation = new LogRotation(
    { ...settings, ...overrides },
    {
      clock,
      log: { ...silentLogger, error: (message) => errors.push(message) },
      running: () => boxes,
      runtime: {
        reopenContainerLog: async ({ containerId }) => {
          await boxes.find(({ id }) => id === containerId)?.reopen();
          return {};
        },
      },
    },
  );
  scope.spawn("rotation", (signal) => rotation.run(signal));
  return { clock, rotation, errors };
}

test("a log that has reached its size is rotated within one interval, and again when it has again", async () => {
  await using scope = new TaskScope();
  const box = new Container("0123456789");
  const small = new Container("small");
  const { clock } = start(scope, [box, small]);
  await clock.advance(9_999);
  assert.equal(box.reopened, 0);
  await clock.advance(1);
  await until("the log is reopened", () => box.reopened === 1);
  box.write("9876543210+");
  await settle(50);
  await clock.advance(10_000);
  await until("the log is reopened", () => box.reopened === 2);
  assert.equal(small.reopened, 0);
});

test("silent logs cost nothing until they speak; then an interval begins", async () => {
  await using scope = new TaskScope();
  const box = new Container("a");
  const { clock } = start(scope, [box]);
  await settle();
  assert.equal(clock.pendingTimers, 1);
  // First look: size learnt. Second: unchanged, so the kernel watches from here on and no time is set.
  for (let round = 0; round < 2; round++) {
    await clock.advance(10_000);
    await settleFiles();
  }
  await clock.advance(3_600_000);
  box.write("0123456789");
  await until("an interval begins", () => clock.pendingTimers === 1);
  await clock.advance(9_000);
  assert.equal(box.reopened, 0);
  await clock.advance(1_000);
  await until("the log is reopened", () => box.reopened === 1);
});

test("containers that come are looked after, those that go are forgotten", async () => {
  await using scope = new TaskScope();
  const boxes: Container[] = [];
  const { clock, rotation, errors } = start(scope, boxes);
  await settle();
  const box = new Container("0123456789");
  boxes.push(box);
  rotation.noteChange();
  await settle();
  await clock.advance(10_000);
  await until("the log is reopened", () => box.reopened === 1);
  boxes.pop();
  rotation.noteChange();
  box.write("0123456789");
  await settle();
  await clock.advance(30_000);
  await settleFiles();
  assert.equal(box.reopened, 1);
  assert.deepEqual(errors, []);
});

test("a missing log is made anew; trouble is said and tried again", async () => {
  await using scope = new TaskScope();
  const lost = new Container("x");
  renameSync(lost.logPath, `${lost.logPath}.20260101-000000`);
  const stubborn = new Container("0123456789");
  stubborn.refusal = new Error("busy");
  const { clock, errors } = start(scope, [lost, stubborn]);
  await settle();
  await clock.advance(10_000);
  await until("the missing log is there", () => existsSync(lost.logPath) && errors.length === 1);
  assert.deepEqual(stubborn.files(), ["0.log"]);
  stubborn.refusal = undefined;
  await settle(50);
  await clock.advance(10_000);
  await until("the stubborn one is rotated", () => stubborn.files().length === 2);
});

test("a negative size switches rotation off, and another one on again", async () => {
  await using scope = new TaskScope();
  const box = new Container("0123456789");
  const { clock, rotation } = start(scope, [box], { maxBytes: -1 });
  await clock.advance(3_600_000);
  assert.equal(box.reopened, 0);
  rotation.configure(settings);
  await clock.advance(10_000);
  await until("it is rotated", () => box.files().length === 2);
});

test("a smaller size also counts for a log that has long been silent", async () => {
  await using scope = new TaskScope();
  const box = new Container("0123456789");
  const { clock, rotation } = start(scope, [box], { maxBytes: 100 });
  await settle();
  for (let round = 0; round < 2; round++) {
    await clock.advance(10_000);
    await settleFiles();
  }
  await clock.advance(3_600_000);
  rotation.configure(settings);
  await settle();
  await clock.advance(10_000);
  await until("it is rotated", () => box.files().length === 2);
});
