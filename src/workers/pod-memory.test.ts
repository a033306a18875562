import assert from "node:assert/strict";
import { access, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { settleFiles } from "../../test/support/fake-clock.ts";
import { silentLogger } from "../base/index.ts";
import type { PodUid } from "../model/index.ts";
import { PodMemoryFiles } from "./pod-memory.ts";

const uid = "uid-1" as PodUid;

async function withMemory(work: (memory: PodMemoryFiles, podsDir: string) => Promise<void>): Promise<void> {
  const podsDir = await mkdtemp(join(tmpdir(), "nodelet-memory-"));
  try {
    await work(new PodMemoryFiles({ podsDir, log: silentLogger }), podsDir);
  } finally {
    await rm(podsDir, { recursive: true });
  }
}

test("what was saved last is what the next run loads", () =>
  withMemory(async (memory, podsDir) => {
    assert.deepEqual(memory.load(uid), {});
    await Promise.all(["Pending", "Running", "Succeeded"].map((phase) => memory.save(uid, { status: { phase } })));
    assert.deepEqual(memory.load(uid), { status: { phase: "Succeeded" } });
    assert.deepEqual(await readdir(join(podsDir, uid)), ["nodelet.json"]);
  }));

test("a file that can't be read counts as empty", () =>
  withMemory(async (memory, podsDir) => {
    await memory.save(uid, { status: { phase: "Running" } });
    const file = join(podsDir, uid, "nodelet.json");
    for (const text of ["", "{", "null", "7", (await readFile(file, "utf8")).slice(0, -3)]) {
      await writeFile(file, text);
      assert.deepEqual(memory.load(uid), {}, text);
    }
  }));

test("nothing is written any more once a pod is forgotten", () =>
  withMemory(async (memory, podsDir) => {
    for (let round = 0; round < 100; round++) {
      const first = memory.save(uid, { status: { phase: "Running", message: String(round) } });
      // A different moment of the writing each time.
      for (let wait = 0; wait < round % 10; wait++) await new Promise((resolve) => setImmediate(resolve));
      const second = memory.save(uid, { status: { phase: "Succeeded" } });
      await memory.forget(uid);
      await rm(join(podsDir, uid), { recursive: true, force: true });
      await Promise.all([first, second]);
      await settleFiles();
      await assert.rejects(access(join(podsDir, uid)), /ENOENT/, `round ${round}`);
    }
  }));
