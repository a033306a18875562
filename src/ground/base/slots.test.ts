import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { FairLimiter } from "./fair-limiter.ts";
import { never } from "./signals.ts";
import { Slots } from "./slots.ts";

/** Work that ends when told to; says in which order it began. */
class Works {
  readonly began: string[] = [];
  readonly #ends = new Map<string, () => void>();

  readonly work = (name: string) => (): Promise<void> => {
    this.began.push(name);
    return new Promise((resolve) => {
      this.#ends.set(name, resolve);
    });
  };

  async end(name: string): Promise<void> {
    this.#ends.get(name)?.();
    await settle();
  }
}

test("work begins at once where there is room, and in turn where there is none", async () => {
  const slots = new Slots<undefined>(2, { next: ([first]) => first });
  const works = new Works();
  const all = ["a", "b", "c", "d"].map((name) => slots.run(undefined, works.work(name), never));
  assert.deepEqual(works.began, ["a", "b"]);
  await works.end("b");
  assert.deepEqual(works.began, ["a", "b", "c"]);
  for (const name of ["a", "c", "d"]) await works.end(name);
  await Promise.all(all);
  assert.equal(slots.held, 0);
});

test("a slot that is given back twice is given back once", async () => {
  const slots = new Slots<undefined>(1, { next: ([first]) => first });
  const free = await slots.take(undefined, never);
  free();
  free();
  assert.equal(slots.held, 0);
});

test("whoever leaves the line takes no slot", async () => {
  const slots = new Slots<undefined>(1, { next: ([first]) => first });
  const free = await slots.take(undefined, never);
  const stop = new AbortController();
  const left = slots.take(undefined, stop.signal);
  stop.abort(new Error("left"));
  await assert.rejects(left, /left/);
  free();
  assert.equal(slots.held, 0);
});

test("keys take turns, each within its share", async () => {
  const clock = new FakeClock();
  const limiter = new FairLimiter<string>(clock, { limit: 2, share: 1, patienceMs: 60_000 });
  const works = new Works();
  const all = ["a1", "a2", "a3", "b1", "c1"].map((name) => limiter.run(name.slice(0, 1), works.work(name), never));
  assert.deepEqual(works.began, ["a1", "b1"]);
  await works.end("b1");
  assert.deepEqual(works.began, ["a1", "b1", "c1"]);
  await works.end("a1");
  assert.deepEqual(works.began, ["a1", "b1", "c1", "a2"]);
  for (const name of ["a2", "c1", "a3"]) await works.end(name);
  await Promise.all(all);
});

test("a key that holds nothing waits no longer than its patience", async () => {
  const clock = new FakeClock();
  const limiter = new FairLimiter<string>(clock, { limit: 1, share: 1, patienceMs: 1_000 });
  const works = new Works();
  const all = ["a1", "a2", "b1"].map((name) => limiter.run(name.slice(0, 1), works.work(name), never));
  await clock.advance(999);
  assert.deepEqual(works.began, ["a1"]);
  await clock.advance(1);
  assert.deepEqual(works.began, ["a1", "b1"]);
  for (const name of ["a1", "b1", "a2"]) await works.end(name);
  await Promise.all(all);
});
