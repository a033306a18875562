import assert from "node:assert/strict";
import { access, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { settleFiles } from "../../test/support/fake-clock.ts";
import { silentLogger, TaskScope } from "../base/index.ts";
import type { PodUid } from "../model/index.ts";
import { PodMemoryFiles } from "./pod-memory.ts";

const uid = "uid-1" as PodUid;

async function withMemory(work: (memory: PodMemoryFiles, podsDir: string) => Promise<void>): Promise<void> {
  const podsDir = await mkdtemp(join(tmpdir(), "nodelet-memory-"));
  await using scope = new TaskScope();
  try {
    await work(new PodMemoryFiles(scope, { podsDir, log: silentLogger }), podsDir);
  } finally {
    await rm(podsDir, { recursive: true });
  }
}

test("what was saved last is what the next run loads", () =>
  withMemory(async (memory, podsDir) => {
    assert.deepEqual(memory.load(uid), {});
    for (const phase of ["Pending", "Running", "Succeeded"]) memory.save(uid, { status: { phase } });
    await settleFiles();
    assert.deepEqual(memory.load(uid), { status: { phase: "Succeeded" } });
    assert.deepEqual(await readdir(join(podsDir, uid)), ["nodelet.json"]);
  }));

test("a file that can't be read counts as empty", () =>
  withMemory(async (memory, podsDir) => {
    memory.save(uid, { status: { phase: "Running" } });
    await settleFiles();
    const file = join(podsDir, uid, "nodelet.json");
    for (const text of ["", "{", "null", "7", (await readFile(file, "utf8")).slice(0, -3)]) {
      await writeFile(file, text);
      assert.deepEqual(memory.load(uid), {}, text);
    }
  }));

test("nothing is written any more once a pod is forgotten", () =>
  withMemory(async (memory, podsDir) => {
    for (let round = 0; round < 100; round++) {
      memory.save(uid, { status: { phase: "Running", message: String(round) } });
      // A different moment of the writing each time.
      for (let wait = 0; wait < round % 10; wait++) await new Promise((resolve) => setImmediate(resolve));
      memory.save(uid, { status: { phase: "Succeeded" } });
      await memory.forget(uid);
      await rm(join(podsDir, uid), { recursive: true, force: true });
      await settleFiles();
      await assert.rejects(access(join(podsDir, uid)), /ENOENT/, `round ${round}`);
    }
  }));
