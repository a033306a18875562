import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ObservedContainer } from "../../ground/model/index.ts";
import { nextRestartCount } from "./restart-count.ts";

const observed = (restartCount: number): ObservedContainer => ({ annotations: { restartCount } }) as ObservedContainer;

test("restart count: one more than the newest instance", async () => {
  assert.equal(await nextRestartCount(observed(0), "/nowhere", 0), 1);
  assert.equal(await nextRestartCount(observed(41), "/nowhere", 0), 42);
});

for (const [files, expected] of [
  [[], 0],
  [["0.log"], 1],
  [["0.log", "7.log", "3.log"], 8],
  [["9.log.20260102-030405.gz"], 10],
  [["5.log.tmp", "x.log", "12", "log", "a7.log"], 6],
  [["99999999999999999999.log", "1.log"], 2],
] as const) {
  test(`restart count from the logs ${JSON.stringify(files)}: ${expected}`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "restart-count-"));
    try {
      for (const file of files) await writeFile(join(directory, file), "");
      await mkdir(join(directory, "50.log"));
      assert.equal(await nextRestartCount(undefined, directory, 0), expected);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
}

test("restart count without a log directory", async () => {
  assert.equal(await nextRestartCount(undefined, "/nowhere/at/all", 0), 0);
});

test("restart count: never fewer than users were told", async () => {
  assert.equal(await nextRestartCount(observed(1), "/nowhere", 5), 5);
  assert.equal(await nextRestartCount(undefined, "/nowhere", 3), 3);
});
