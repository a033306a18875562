import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../../../test/support/fake-clock.ts";
import { SharedWork } from "./shared-work.ts";

/** Work that ends when told to, and notes when it was stopped. */
class Gate {
  readonly signals: AbortSignal[] = [];
  #release: (() => void) | undefined;

  readonly work = (signal: AbortSignal): Promise<string> => {
    this.signals.push(signal);
    const turn = this.signals.length;
    return new Promise((resolve, reject) => {
      this.#release = () => resolve(`result ${turn}`);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  };

  release(): void {
    this.#release?.();
  }
}

test("the same key runs once and everybody gets its result", async () => {
  const shared = new SharedWork<string, string>();
  const gate = new Gate();
  const { signal } = new AbortController();
  const both = Promise.all([shared.join("a", gate.work, signal), shared.join("a", gate.work, signal)]);
  gate.release();
  assert.deepEqual(await both, ["result 1", "result 1"]);
  const later = shared.join("a", gate.work, signal);
  gate.release();
  assert.equal(await later, "result 2");
});

test("a failure reaches everybody, and the next one starts afresh", async () => {
  const shared = new SharedWork<string, string>();
  const { signal } = new AbortController();
  const fails = async (): Promise<string> => {
    throw new Error("broken");
  };
  const first = shared.join("a", fails, signal);
  await Promise.all([assert.rejects(first, /broken/), assert.rejects(shared.join("a", fails, signal), /broken/)]);
  assert.equal(await shared.join("a", async () => "fine", signal), "fine");
});

test("one who aborts leaves, the work goes on for the others", async () => {
  const shared = new SharedWork<string, string>();
  const gate = new Gate();
  const leaver = new AbortController();
  const leaving = shared.join("a", gate.work, leaver.signal);
  const staying = shared.join("a", gate.work, new AbortController().signal);
  leaver.abort(new Error("gone"));
  await assert.rejects(leaving, /gone/);
  assert.equal(gate.signals[0]?.aborted, false);
  gate.release();
  assert.equal(await staying, "result 1");
});

test("the last one to leave stops the work and waits for its end; a newcomer starts afresh meanwhile", async () => {
  const shared = new SharedWork<string, string>();
  let end: () => void = () => {};
  const stubborn = (signal: AbortSignal): Promise<string> =>
    new Promise((_, reject) => {
      end = () => reject(signal.reason);
    });
  const leaver = new AbortController();
  const leaving = shared.join("a", stubborn, leaver.signal);
  let left = false;
  const noticed = assert.rejects(leaving, /gone/).then(() => {
    left = true;
  });
  leaver.abort(new Error("gone"));
  assert.equal(await shared.join("a", async () => "fresh", new AbortController().signal), "fresh");
  await settle();
  assert.equal(left, false);
  end();
  await noticed;
});

test("an aborted signal never joins", async () => {
  const shared = new SharedWork<string, string>();
  await assert.rejects(
    shared.join("a", async () => "x", AbortSignal.abort(new Error("already"))),
    /already/,
  );
});
