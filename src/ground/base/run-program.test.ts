import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { never, runForResult, runToEnd } from "./index.ts";

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
