import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { ContainerLogWriter } from "../../../../test/support/log-writer.ts";
import { until } from "../../../../test/support/until.ts";
import { systemClock } from "../../../ground/base/index.ts";
import { parseMoment } from "./line-time.ts";
import { readPart } from "./log-part.ts";
import { type ContainerLife, type LogRequest, readLog } from "./read-log.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-logs-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const never = new AbortController().signal;

let count = 0;
function newWriter(): ContainerLogWriter {
  return new ContainerLogWriter(join(directory, String(count++), "0.log"));
}

/** A container whose end the test decides. */
class Life implements ContainerLife {
  #ended = false;
  readonly #listeners = new Set<() => void>();
  hasEnded(): boolean {
    return this.#ended;
  }
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  get listeners(): number {
    return this.#listeners.size;
  }
  end(): void {
    this.#ended = true;
    for (const listener of this.#listeners) listener();
  }
}

const plain = {
  since: undefined,
  timestamps: false,
  stream: "All",
  tailLines: undefined,
  limitBytes: undefined,
} as const;

async function read(path: string, options: Partial<LogRequest> = {}, signal = never): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const sink = async (bytes: Buffer): Promise<void> => void chunks.push(Buffer.from(bytes));
  await readLog({ path, follow: undefined, ...plain, ...options }, sink, systemClock, signal);
  return Buffer.concat(chunks);
}

/** Follows, optionally with a reader that now and then takes its time. */
function follow(
  path: string,
  life: Life,
  options: Partial<LogRequest> = {},
  delay: () => Promise<void> = async () => {},
) {
  const chunks: Buffer[] = [];
  const sink = async (bytes: Buffer): Promise<void> => {
    chunks.push(Buffer.from(bytes));
    await delay();
  };
  const done = readLog({ path, ...plain, ...options, follow: life }, sink, systemClock, never);
  return { done, text: () => Buffer.concat(chunks) };
}

/** Waits for a promise; its own timers would let the process end. */
async function ends(promise: Promise<unknown>): Promise<void> {
  let settled = false;
  const mark = (): void => {
    settled = true;
  };
  promise.then(mark, mark);
  await until("the end of the log", () => settled);
  await promise;
}

const line = (text: string): Buffer => Buffer.from(text);

/** Three files: 1 and 2 compressed, 3 set aside plain, 4 live. */
async function rotatedLog(): Promise<ContainerLogWriter> {
  const writer = newWriter();
  for (let part = 1; part <= 4; part++) {
    for (let index = 1; index <= 3; index++) writer.say(line(`${part}.${index}`));
    if (part < 4) await writer.rotate(9);
  }
  writer.close();
  return writer;
}

const allLines = ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1", "3.2", "3.3", "4.1", "4.2", "4.3"];

for (const lines of [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 1000]) {
  test(`the last ${lines} lines, also from files set aside and compressed`, async () => {
    const { path } = await rotatedLog();
    assert.deepEqual(readdirSync(dirname(path)).filter((name) => name.endsWith(".gz")).length, 2);
    const expected = lines === 0 ? "" : allLines.slice(-lines).join("\n").concat("\n");
    assert.equal((await read(path, { tailLines: lines })).toString(), expected);
  });
}

test("all there is, oldest first", async () => {
  const { path, said } = await rotatedLog();
  assert.deepEqual(await read(path), said);
});

test("limitBytes cuts exactly, across files too", async () => {
  const { path, said } = await rotatedLog();
  for (const limitBytes of [1, 3, 4, 5, 12, 13, 47, 48, 49]) {
    assert.deepEqual(await read(path, { limitBytes }), said.subarray(0, limitBytes));
  }
  assert.equal((await read(path, { limitBytes: 10, timestamps: true })).toString(), "2026-01-02");
});

test("since leaves out what is older, in whole files and in lines", async () => {
  const { path } = await rotatedLog();
  const since = parseMoment("2026-01-02T03:04:05.00001Z");
  assert.equal((await read(path, { since })).toString(), "4.1\n4.2\n4.3\n");
  assert.equal((await read(path, { since, tailLines: 2 })).toString(), "4.2\n4.3\n");
  assert.equal((await read(path, { since: parseMoment("2100-01-01T00:00:00Z") })).toString(), "");
});

test("a log that is not there, or that is a link, is refused", async () => {
  const { path } = newWriter();
  await assert.rejects(read(join(dirname(path), "1.log")), /no such file or directory/);
  symlinkSync("/etc/passwd", join(dirname(path), "2.log"));
  await assert.rejects(read(join(dirname(path), "2.log")), /is a link/);
  const docker = join(dirname(path), `${"a".repeat(64)}-json.log`);
  writeFileSync(docker, '{"log":"hi\\n","stream":"stdout","time":"2026-01-02T03:04:05Z"}\n');
  symlinkSync(docker, join(dirname(path), "3.log"));
  assert.equal((await read(join(dirname(path), "3.log"))).toString(), "hi\n");
});

test("what has the name of a file set aside but is none is passed over", async () => {
  const writer = newWriter();
  writer.say(line("a"));
  writer.close();
  const stamp = "20260101-000000";
  mkdirSync(`${writer.path}.${stamp}.gz`);
  assert.equal(String(await read(writer.path)), "a\n");
  const directoryAsLog = join(directory, "no-file.log");
  mkdirSync(directoryAsLog);
  await assert.rejects(read(directoryAsLog), /is not a file/);
});

test("a compressed part that the disk can't give fails the reading, and nothing else", async () => {
  // Reading a directory fails as a broken disk does: after it was opened.
  await using handle = await open(directory, "r");
  const part = { name: "a.gz", handle, inode: 1, compressed: true, modifiedMs: 0, changedMs: 0, size: 1 };
  await assert.rejects(async () => {
    for await (const _ of readPart(part, 0, 1)) assert.fail("there is nothing to read");
  }, /EISDIR/);
});

test("a log of zeros, as a loss of power may leave it, is refused before all of it is in memory", async () => {
  const path = join(directory, "zeros.log");
  writeFileSync(path, "");
  truncateSync(path, 2 ** 36);
  await assert.rejects(read(path), /unsupported log format/);
});

test("while the log has no file of its name, the one set aside is read", async () => {
  const writer = newWriter();
  writer.say(line("a"));
  renameSync(writer.path, `${writer.path}.20260101-000000`);
  writer.say(line("b"));
  assert.equal((await read(writer.path)).toString(), "a\nb\n");
});

test("follow gives new lines until the container has ended, and what was written last", async () => {
  const writer = newWriter();
  const life = new Life();
  const following = follow(writer.path, life);
  await until("it listens", () => life.listeners === 1);
  writer.say(line("one"));
  await until("the first line", () => following.text().toString() === "one\n");
  writer.say(line("two"));
  life.end();
  await ends(following.done);
  assert.equal(following.text().toString(), "one\ntwo\n");
  assert.equal(life.listeners, 0);
});

test("follow of an ended container ends at once; an abort ends any", async () => {
  const writer = newWriter();
  writer.say(line("x"));
  const ended = new Life();
  ended.end();
  assert.equal((await read(writer.path, { follow: ended })).toString(), "x\n");
  const stop = new AbortController();
  const following = read(writer.path, { follow: new Life() }, stop.signal);
  stop.abort(new DOMException("enough", "AbortError"));
  await assert.rejects(following, { name: "AbortError" });
});

test("follow with tail starts at the tail; with a limit it stops there", async () => {
  const writer = await rotatedLog();
  const life = new Life();
  const tailing = follow(writer.path, life, { tailLines: 4 });
  const limited = follow(writer.path, life, { tailLines: 0, limitBytes: 2 });
  await until("the tail", () => tailing.text().toString() === "3.3\n4.1\n4.2\n4.3\n");
  await until("both listen", () => life.listeners === 2);
  const more = new ContainerLogWriter(writer.path);
  more.say(line("5"));
  more.say(line("6"));
  await ends(limited.done);
  assert.equal(limited.text().toString(), "5\n");
  life.end();
  await ends(tailing.done);
  assert.equal(tailing.text().toString(), "3.3\n4.1\n4.2\n4.3\n5\n6\n");
});

test("what is written to the old file while it has its new name is not lost", async () => {
  const writer = newWriter();
  const life = new Life();
  const following = follow(writer.path, life);
  writer.say(line("before"));
  await writer.rotate(
    5,
    async () => {
      writer.say(line("late 1"));
      await systemClock.sleep(30, never);
      writer.say(line("late 2"));
    },
    line("late 3"),
  );
  writer.say(line("after"));
  await until("all lines", () => following.text().toString() === "before\nlate 1\nlate 2\nlate 3\nafter\n");
  life.end();
  await ends(following.done);
});

test("a reader that slept through several rotations goes on in the files they left", async () => {
  const writer = newWriter();
  const life = new Life();
  let release = (): void => {};
  const asleep = new Promise<void>((resolve) => {
    release = resolve;
  });
  const following = follow(writer.path, life, {}, () => asleep);
  writer.say(line("first"));
  await until("it reads", () => following.text().length > 0);
  for (let round = 0; round < 6; round++) {
    writer.say(line(`round ${round}`));
    await writer.rotate(20);
  }
  writer.say(line("last"));
  release();
  life.end();
  await ends(following.done);
  assert.deepEqual(following.text(), writer.said);
});

test("a reader whose file was deleted meanwhile gets all that is left", async () => {
  const writer = newWriter();
  const life = new Life();
  let release = (): void => {};
  const asleep = new Promise<void>((resolve) => {
    release = resolve;
  });
  const following = follow(writer.path, life, {}, () => asleep);
  writer.say(line("first"));
  await until("it reads", () => following.text().length > 0);
  for (let round = 0; round < 6; round++) {
    writer.say(line(`round ${round}`));
    await writer.rotate(3);
  }
  writer.say(line("last"));
  release();
  life.end();
  await ends(following.done);
  // Its own file to the end, though deleted, then what the limit on files has left.
  assert.equal(following.text().toString(), "first\nround 0\nround 4\nround 5\nlast\n");
});

test("a log emptied in place is read from its start again", async () => {
  const writer = newWriter();
  const life = new Life();
  const following = follow(writer.path, life);
  writer.say(line("a long line before"));
  await until("the first line", () => following.text().toString() === "a long line before\n");
  truncateSync(writer.path);
  writer.say(line("new"));
  await until("the new line", () => following.text().toString().endsWith("new\n"));
  life.end();
  await ends(following.done);
});

test("a log directory that goes ends nothing but the following", async () => {
  const writer = newWriter();
  const life = new Life();
  const following = follow(writer.path, life);
  writer.say(line("x"));
  await until("the line", () => following.text().toString() === "x\n");
  rmSync(dirname(writer.path), { recursive: true });
  life.end();
  await ends(following.done);
  assert.equal(existsSync(writer.path), false);
});

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("say" as const),
      bytes: fc.integer({ min: 0, max: 400 }),
      splitAt: fc.constantFrom(16, 100, 16_384),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("say" as const),
      bytes: fc.constant(1_048_576),
      splitAt: fc.constantFrom(16_384, 2_000_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("rotate" as const), lateLine: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pause" as const), ms: fc.integer({ min: 0, max: 12 }) }) },
);

/** Any bytes but newlines: a container may write what it likes. */
function binary(bytes: number): Buffer {
  const content = randomBytes(bytes);
  for (let index = content.indexOf(10); index >= 0; index = content.indexOf(10, index)) content[index] = 0;
  return content;
}

test("what is read is what was written, whoever reads and whenever it is rotated", { timeout: 100_000 }, async () => {
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 5, maxLength: 40 }),
    fc.integer({ min: 0, max: 20 }),
    fc.integer({ min: 0, max: 60 }),
    fc.integer({ min: 1, max: 30_000 }),
    async (steps, joinAt, tailLines, limitBytes) => {
      const writer = newWriter();
      const life = new Life();
      let slow = 0;
      const slowly = async (): Promise<void> => {
        if (slow++ % 4 === 0) await systemClock.sleep(9, never);
      };
      const followers = [follow(writer.path, life), follow(writer.path, life, {}, slowly)];
      for (const [index, each] of steps.entries()) {
        if (index === joinAt) followers.push(follow(writer.path, life, {}, slowly));
        if (each.do === "say") writer.say(binary(each.bytes), each.bytes % 2 === 0 ? "stdout" : "stderr", each.splitAt);
        else if (each.do === "pause") await systemClock.sleep(each.ms, never);
        else await writer.rotate(1_000, async () => writer.say(binary(20)), each.lateLine ? binary(30) : undefined);
      }
      const whole = await read(writer.path);
      const tail = await read(writer.path, { tailLines });
      const start = await read(writer.path, { limitBytes });
      life.end();
      await ends(Promise.all(followers.map(({ done }) => done)));
      writer.close();
      assert.ok(whole.equals(writer.said), "the log read as a whole");
      const lastLines = tailLines === 0 ? [] : writer.lines.slice(-tailLines);
      assert.ok(tail.equals(Buffer.concat(lastLines)), `the last ${tailLines} lines`);
      assert.ok(start.equals(writer.said.subarray(0, limitBytes)), `the first ${limitBytes} bytes`);
      for (const [index, { text }] of followers.entries()) assert.ok(text().equals(writer.said), `follower ${index}`);
      rmSync(dirname(writer.path), { recursive: true });
    },
  );
  await fc.assert(property, { numRuns: 25, endOnFailure: true });
});
