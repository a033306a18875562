import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/base/index.ts";
import { FuzzRandom, type FuzzRun, runWatched } from "./fuzzing.ts";

const never = new AbortController().signal;
const standstill = { standstillMs: 100 };

/** Keeps the loop for some twenty times what the measure of the machine takes, whatever its speed. */
async function hog(goesOn: () => boolean): Promise<void> {
  goesOn();
  await systemClock.sleep(50, never);
  for (let round = 0; round < 1_000_000; round++) JSON.parse(JSON.stringify({ round }));
  await systemClock.sleep(50, never);
}

test("a fuzzer fails by a standstill of its own making", async () => {
  await assert.rejects(
    runWatched(1, 20_000, ({ goesOn }) => hog(goesOn), standstill),
    /stood still/,
  );
});

test("a fuzzer fails by what waits rather than computes", async () => {
  const wait = async ({ goesOn }: FuzzRun): Promise<void> => {
    goesOn();
    await systemClock.sleep(50, never);
    // Longer than any machine that is merely busy keeps a process waiting.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
    await systemClock.sleep(50, never);
  };
  await assert.rejects(runWatched(1, 30_000, wait, { standstillMs: 5 }), /stood still/);
});

test("what a fuzzer does before it goes on is set-up, and may take its time", async () => {
  await runWatched(1, 20_000, () => hog(() => true), standstill);
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
