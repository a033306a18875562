import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/base/index.ts";
import { FuzzRandom, runWatched } from "./fuzzing.ts";

test("a fuzzer fails by a standstill of its own making", async () => {
  const busy = async (): Promise<void> => {
    await systemClock.sleep(50, new AbortController().signal);
    const used = process.cpuUsage();
    while (process.cpuUsage(used).user < 300_000);
    await systemClock.sleep(50, new AbortController().signal);
  };
  await assert.rejects(runWatched(1, 5_000, busy, { standstillMs: 100 }), /stood still/);
});

test("the same seed makes the same choices", () => {
  const choices = (random: FuzzRandom): unknown => [
    random.below(1_000),
    random.text(50),
    random.bytes(9),
    random.pick("abc".split("")),
  ];
  assert.deepEqual(choices(new FuzzRandom(7)), choices(new FuzzRandom(7)));
  assert.notDeepEqual(choices(new FuzzRandom(7)), choices(new FuzzRandom(8)));
});
