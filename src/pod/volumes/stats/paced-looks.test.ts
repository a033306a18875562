import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { WalkTurns } from "../../../connections/host/index.ts";
import { PacedLooks } from "./paced-looks.ts";

const never = new AbortController().signal;

test("a look that does not end is one look, and nobody waits for it for ever", async () => {
  const clock = new FakeClock();
  const looks = new PacedLooks<number>(clock);
  let begun = 0;
  const hang = (): Promise<number> => {
    begun++;
    return new Promise(() => {});
  };
  for (let turn = 0; turn < 5; turn++) {
    const asked = looks.look(hang, never);
    const refused = assert.rejects(asked, /more than 10 s/);
    await clock.advance(10_000);
    await refused;
  }
  assert.equal(begun, 1);
});

test("who asks may leave; the answer is there for the next", async () => {
  const clock = new FakeClock();
  const looks = new PacedLooks<number>(clock);
  const stop = new AbortController();
  const slow = async (): Promise<number> => {
    await clock.sleep(30_000, never);
    return 7;
  };
  const left = assert.rejects(looks.look(slow, stop.signal), /enough/);
  stop.abort(new Error("enough"));
  await left;
  await clock.advance(30_000);
  assert.equal(await looks.look(() => Promise.reject(new Error("not again so soon")), never), 7);
  await clock.advance(60_000);
  assert.equal(await looks.look(async () => 8, never), 8, "no longer than a minute");
  assert.equal(await looks.look(async () => 9, never), 9, "what is cheap is done each time");
});

test("large walks let small ones through, and walks that hang let go of their turn", async () => {
  const clock = new FakeClock();
  const turns = new WalkTurns(clock);
  const large = [1, 2].map(() =>
    turns.run(async ({ turn, signal }) => {
      for (let step = 0; step < 1_000; step++) {
        await turn();
        await clock.sleep(100, signal);
      }
    }, never),
  );
  let isDone = false;
  const small = turns.run(async ({ turn }) => {
    await turn();
    isDone = true;
  }, never);
  await clock.advance(1_000);
  assert.equal(isDone, true);
  await small;
  await clock.advance(200_000);
  await Promise.all(large);
  const hang = (): Promise<void> => new Promise(() => {});
  for (let count = 0; count < 3; count++) void turns.run(hang, never);
  const other = turns.run(async ({ turn }) => turn(), never);
  await clock.advance(30_000);
  await other;
});
