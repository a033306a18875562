import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { LinkedSignal, onAbort, unlessAborted, withDeadline } from "./signals.ts";

const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

test("whoever listens to a signal that has fired is told at once", () => {
  let told = 0;
  onAbort(AbortSignal.abort(), () => told++);
  assert.equal(told, 1);
});

test("a listener is called once, and not after it was let go", () => {
  const controller = new AbortController();
  let told = 0;
  onAbort(controller.signal, () => told++);
  const gone = onAbort(controller.signal, () => assert.fail("let go before"));
  gone[Symbol.dispose]();
  controller.abort();
  controller.abort();
  assert.equal(told, 1);
});

test("a linked signal fires with the reason of the first parent, and leaves no listener behind", () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const linked = new LinkedSignal(first.signal, undefined, second.signal);
  second.abort("second");
  first.abort("first");
  assert.equal(linked.signal.reason, "second");
  linked[Symbol.dispose]();
  assert.equal(listeners(first.signal) + listeners(second.signal), 0);
});

test("work under a deadline sees it pass, and a signal that outlives it keeps nothing", async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const work = withDeadline(
    clock,
    1_000,
    () => new Error("too late"),
    signal,
    (bounded) =>
      new Promise((_, reject) => {
        onAbort(bounded, () => reject(bounded.reason));
      }),
  );
  const outcome = assert.rejects(work, /too late/);
  await clock.advance(1_000);
  await outcome;
  assert.equal(listeners(signal), 0);
});

test("work that can't be cut off is left alone, its later failure too", async () => {
  const controller = new AbortController();
  let fail: (error: Error) => void = () => {};
  const work = new Promise<void>((_, reject) => {
    fail = reject;
  });
  const outcome = assert.rejects(unlessAborted(work, controller.signal), /stop/);
  controller.abort(new Error("stop"));
  await outcome;
  fail(new Error("later"));
  assert.equal(await unlessAborted(Promise.resolve(7), new AbortController().signal), 7);
});
