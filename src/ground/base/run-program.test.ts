import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { HungMount } from "../../../test/support/hung-mount.ts";
import { until } from "../../../test/support/until.ts";
import { loadSyscalls, unmountFlags } from "../../connections/host/index.ts";
import { never, runForResult, runToEnd, systemClock } from "./index.ts";

const shortage = fileURLToPath(new URL("../../../test/support/descriptor-shortage.ts", import.meta.url));

test("a program is fed, and what it prints is the answer", async () => {
  assert.equal(await runToEnd({ program: "cat", args: [], input: "here" }, never), "here");
});

test("a program that is not there can't be started", async () => {
  await assert.rejects(runForResult({ program: "/nowhere/program", args: [] }, never), /cannot be started: .*ENOENT/);
});

// A process takes one descriptor for each of its pipes, two for a moment: it may run out of them anywhere in between.
for (const left of [0, 1, 2, 4]) {
  test(`with ${left} descriptors left, what can't be started fails and harms nobody`, async () => {
    const script = ["-c", 'ulimit -n 150; exec "$@"', "sh", process.execPath, "--import", "tsx", shortage, `${left}`];
    // By itself: a signal to its process group must not reach the test.
    const { stdout } = await promisify(execFile)("setsid", ["--wait", "sh", ...script]);
    const { program, own, problems } = JSON.parse(stdout);
    assert.deepEqual(problems, []);
    assert.match(program, /EMFILE|done/);
    assert.match(own, /EMFILE|ended with code|done/);
    if (left === 0) assert.match(program + own, /EMFILE.*EMFILE/);
  });
}

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };

/** The three that follow the first are put aside one after the other, each after 5 s. */
const longerThanTheyAreWaitedForMs = 16_000;

test("while programs can't be loaded, the event loop turns and other programs are started", needsRoot, async () => {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-program-"));
  const cancel = new AbortController();
  let gone = 0;
  {
    await using hung = await HungMount.at(directory);
    const command = { program: join(hung.path, "program"), args: [], onGone: () => void gone++ };
    const echo = { program: "echo", args: ["here"] };
    const stuck = [runForResult(command, cancel.signal)];
    // The next one waits until the thread that hangs is put aside.
    assert.equal(await runToEnd(echo, never), "here\n");
    // As many as may hang; after them, one waits until they have given up.
    while (stuck.length < 4) stuck.push(runForResult(command, cancel.signal));
    const waiting = runToEnd(echo, never);
    await systemClock.sleep(longerThanTheyAreWaitedForMs, never);
    cancel.abort(new Error("given up"));
    for (const each of stuck) await assert.rejects(each, /given up/);
    assert.equal(gone, 0);
    // They wait as long as the file system does, which is told to give up.
    await (await loadSyscalls()).unmount(hung.path, unmountFlags.force).catch(() => {});
    assert.equal(await waiting, "here\n");
    await until("the programs that hung have ended", () => gone === stuck.length);
  }
  await rm(directory, { recursive: true });
});

test("a program that waits for its turn to be started can be given up", async () => {
  const cancel = new AbortController();
  let gone = 0;
  const command = { program: "true", args: [], onGone: () => void gone++ };
  const runs = Array.from({ length: 5 }, () => runToEnd(command, cancel.signal));
  cancel.abort(new Error("given up"));
  for (const run of runs) await assert.rejects(run, /given up/);
  await until("all have gone", () => gone === runs.length);
});
