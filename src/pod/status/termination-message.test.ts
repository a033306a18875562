import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { exited, testObserved, testUid } from "../../../test/support/pods.ts";
import type { ContainerId, ObservedContainer } from "../../ground/model/index.ts";
import { readTerminationText } from "./termination-message.ts";
import { TerminationTexts } from "./termination-message-reader.ts";

const root = mkdtempSync(join(tmpdir(), "nodelet-words-"));
after(() => rmSync(root, { recursive: true, force: true }));
const path = "/dev/termination-log";
let files = 0;

/** A path as the agent makes it for the container `main`. */
function ownPath(): string {
  const directory = join(root, "pods", testUid, "containers", "main");
  mkdirSync(directory, { recursive: true });
  return join(directory, `f${files++}`);
}

function ended(hostPaths: readonly string[], more: Partial<ObservedContainer> = {}): ObservedContainer {
  const { annotations } = testObserved("main");
  return exited("main", 1, {
    annotations: { ...annotations, terminationMessagePath: path, terminationMessagePolicy: "FallbackToLogsOnError" },
    mounts: hostPaths.map((hostPath) => ({ containerPath: path, hostPath })),
    logPath: join(root, "absent.log"),
    ...more,
  });
}

test("the file made for it is read, not what the pod mounts at the same path", async () => {
  const own = ownPath();
  writeFileSync(own, "mine");
  const fifo = join(root, "fifo");
  execFileSync("mkfifo", [fifo]);
  const theirs = join(root, "theirs");
  writeFileSync(theirs, "not mine");
  for (const mounted of [[fifo, own], [theirs, own], [own]]) {
    assert.equal(await readTerminationText(testUid, ended(mounted)), "mine");
  }
  assert.equal(await readTerminationText(testUid, ended([fifo])), "");
});

test("what is no regular file is not read, wherever it lies, and holds nobody up", async () => {
  const fifo = ownPath();
  execFileSync("mkfifo", [fifo]);
  const link = ownPath();
  symlinkSync("/etc/hostname", link);
  const directory = ownPath();
  mkdirSync(directory);
  for (const hostPath of [fifo, link, directory]) {
    const text = await readTerminationText(testUid, ended([hostPath]));
    assert.match(text, /^Error on reading termination log \/dev\/termination-log: /);
  }
  for (const logPath of [fifo, link, directory]) {
    const text = await readTerminationText(testUid, ended([], { logPath }));
    assert.match(text, /^Error on reading termination message from logs: /);
  }
  const sysFile = "/dev/zero";
  assert.match(await readTerminationText(testUid, ended([], { logPath: sysFile })), /not a regular file/);
});

test("only the end of a file counts, however large it is", async () => {
  const own = ownPath();
  writeFileSync(own, `${"a".repeat(1_000_000)}${"z".repeat(4096)}`);
  assert.ok((await readTerminationText(testUid, ended([own]))) === "z".repeat(4096));
});

test("the end of a log: joined where the runtime split it, without the heads of lines", async () => {
  const own = ownPath();
  writeFileSync(own, "");
  const logPath = join(root, "main.log");
  const head = "2026-01-01T00:00:00.000000000Z stderr";
  const long = "x".repeat(16_384);
  writeFileSync(logPath, `${`${head} F ${long}\n`.repeat(50)}${head} P ${long}\n${head} F end\n${head} F last\n`);
  const text = await readTerminationText(testUid, ended([own], { logPath }));
  assert.ok(text === `${"x".repeat(2048 - "end\nlast\n".length)}end\nlast\n`, text.slice(-20));
  writeFileSync(logPath, Array.from({ length: 200 }, (_, line) => `${head} F ${line}\n`).join(""));
  const numbers = (await readTerminationText(testUid, ended([own], { logPath }))).trim().split("\n");
  assert.deepEqual([numbers.length, numbers[0], numbers.at(-1)], [80, "120", "199"]);
});

/** Texts whose reading ends when the test says so. */
class Reads {
  readonly clock = new FakeClock();
  readonly begun: string[] = [];
  readonly late: string[] = [];
  readonly #ends = new Map<string, (text: string) => void>();
  readonly texts = new TerminationTexts({
    clock: this.clock,
    read: (uid, { id }) => {
      this.begun.push(`${uid}/${id}`);
      return new Promise((resolve) => this.#ends.set(id, resolve));
    },
    onLate: (uid) => this.late.push(uid),
  });

  async end(id: string, text: string): Promise<void> {
    await settle();
    this.#ends.get(id)?.(text);
    await settle();
  }
}

const main = (id: string): ObservedContainer => exited("main", 1, { id: id as ContainerId });

test("each ended container is read once", async () => {
  const reads = new Reads();
  const first = reads.texts.prepare(testUid, [main("a")]);
  const second = reads.texts.prepare(testUid, [main("a")]);
  await reads.end("a", "words");
  await Promise.all([first, second]);
  await reads.texts.prepare(testUid, [main("a")]);
  assert.deepEqual(reads.begun, [`${testUid}/a`]);
  assert.equal(reads.texts.of(main("a"), testUid), "words");
  await reads.texts.prepare(testUid, []);
  assert.equal(reads.texts.of(main("a"), testUid), "", "what is gone is forgotten");
  assert.equal(reads.clock.pendingTimers, 0);
});

test("of many dead instances only those are read that a status shows", async () => {
  const reads = new Reads();
  void reads.texts.prepare(testUid, [main("c"), main("b"), main("a")]);
  await settle();
  assert.deepEqual(reads.begun, [`${testUid}/c`, `${testUid}/b`]);
});

test("a read that hangs is waited for once; what it says is shown when it comes", async () => {
  const reads = new Reads();
  let isReady = false;
  const prepared = reads.texts.prepare(testUid, [main("a")]).then(() => {
    isReady = true;
  });
  await reads.clock.advance(1_000);
  assert.equal(isReady, false);
  await reads.clock.advance(1_000);
  await prepared;
  assert.equal(reads.texts.of(main("a"), testUid), "");
  await reads.texts.prepare(testUid, [main("a")]);
  await reads.end("a", "words");
  assert.deepEqual(reads.late, [testUid]);
  assert.equal(reads.texts.of(main("a"), testUid), "words");
});

test("reads that hang take two threads at most, and cost others no time", async () => {
  const reads = new Reads();
  const [one, two, three] = ["one", "two", "three"].map((uid) => uid as typeof testUid);
  assert.ok(one !== undefined && two !== undefined && three !== undefined);
  const hanging = Promise.all([reads.texts.prepare(one, [main("a")]), reads.texts.prepare(two, [main("b")])]);
  await reads.clock.advance(2_000);
  await hanging;
  await reads.texts.prepare(three, [main("c")]);
  assert.deepEqual(reads.begun, ["one/a", "two/b"]);
  await reads.end("a", "");
  assert.deepEqual(reads.begun, ["one/a", "two/b", "three/c"], "its turn has come");
  await reads.end("c", "words");
  assert.equal(reads.texts.of(main("c"), three), "words");
  const usual = reads.texts.prepare(one, [main("d")]);
  await settle();
  await reads.end("d", "more");
  await usual;
  assert.equal(reads.texts.of(main("d"), one), "more");
});
