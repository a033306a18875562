import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { test } from "node:test";
import { systemClock } from "../../src/ground/base/index.ts";
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

/** Each holds something, and gives back what lets go of it. */
const leaking: readonly (readonly [what: string, leak: () => () => void])[] = [
  [
    "descriptors",
    () => {
      const descriptor = openSync("/dev/null", "r");
      return () => closeSync(descriptor);
    },
  ],
  [
    "timers",
    () => {
      const over = new AbortController();
      void systemClock.sleep(600_000, over.signal).catch(() => {});
      return () => over.abort();
    },
  ],
  [
    "heapBytes",
    () => {
      const held = Array.from({ length: 200_000 }, (_, index) => ({ index }));
      return () => void held.pop();
    },
  ],
];
for (const [what, leak] of leaking) {
  test(`a fuzzer fails by ${what} that it never gives back`, async () => {
    const held: (() => void)[] = [];
    const run = async ({ goesOn }: FuzzRun): Promise<void> => {
      for (let round = 0; round < 20 && goesOn(); round++) {
        held.push(leak());
        await systemClock.sleep(0, never);
      }
    };
    try {
      await assert.rejects(runWatched(1, 60_000, run, { givenBackWithinMs: 200 }), new RegExp(`leaks: .*${what}`));
    } finally {
      for (const letGo of held) letGo();
    }
  });
}

test("a fuzzer fails by listeners that nobody takes off", async () => {
  const run = async ({ goesOn, signal }: FuzzRun): Promise<void> => {
    for (let count = 0; count < 20 && goesOn(); count++) signal.addEventListener("abort", () => {});
  };
  await assert.rejects(runWatched(1, 20_000, run), /leak/);
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
