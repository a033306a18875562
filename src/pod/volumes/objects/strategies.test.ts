import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../../test/support/fake-clock.ts";
import { MemoryObjects } from "../../../../test/support/memory-objects.ts";
import { testUid } from "../../../../test/support/pods.ts";
import { CachedObjects } from "./polled-objects.ts";
import type { VolumeObjectRef } from "./ports.ts";
import { objectsBy } from "./strategy.ts";
import { WatchedObjects } from "./watched-objects.ts";

const ref: VolumeObjectRef<"configmap"> = { kind: "configmap", namespace: "default", name: "m" };
const never = new AbortController().signal;
const idleMs = 300_000;

function watched() {
  const clock = new FakeClock();
  const source = new MemoryObjects();
  const objects = new WatchedObjects(source, { clock, idleMs });
  const changes: VolumeObjectRef[] = [];
  objects.onChange((changed) => changes.push(changed));
  return { clock, source, objects, changes };
}

test("Watch: one watch for all holders, none after the last", async () => {
  const { source, objects } = watched();
  source.configMap("m", { a: "1" });
  objects.hold(ref, "pod-1", testUid);
  objects.hold(ref, "pod-2", testUid);
  objects.hold(ref, "pod-2", testUid);
  assert.equal(source.watches, 1);
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "1" });
  objects.release(ref, "pod-1");
  assert.equal(source.watches, 1);
  objects.release(ref, "pod-2");
  assert.equal(source.watches, 0);
  assert.equal(objects.size, 0);
});

test("Watch: every change is told once, the first answer is not a change", async () => {
  const { source, objects, changes } = watched();
  objects.hold(ref, "pod", testUid);
  assert.equal(await objects.read(ref, never), undefined);
  assert.equal(changes.length, 0);
  source.configMap("m", { a: "1" });
  await settle();
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "1" });
  source.remove("configmap", "m");
  await settle();
  assert.equal(await objects.read(ref, never), undefined);
  assert.deepEqual(changes, [ref, ref]);
  assert.equal(source.gets, 0);
});

test("Watch: without a first answer reading fails after a second, and works when the answer is there", async () => {
  const { clock, source, objects } = watched();
  source.outage = new Error("away");
  source.configMap("m", { a: "1" });
  objects.hold(ref, "pod", testUid);
  const read = assert.rejects(objects.read(ref, never), {
    message: "failed to sync configmap cache: timed out waiting for the condition",
  });
  await clock.advance(1_000);
  await read;
  source.outage = undefined;
  source.configMap("m", { a: "2" });
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "2" });
});

test("Watch: a wait for the first answer can be given up", async () => {
  const { clock, source, objects } = watched();
  source.outage = new Error("away");
  const stop = new AbortController();
  const read = assert.rejects(objects.read(ref, stop.signal), /enough/);
  stop.abort(new Error("enough"));
  await read;
  await clock.advance(idleMs);
  assert.equal(clock.pendingTimers, 0);
});

test("Watch: a watch that served a read only ends when nobody asks any more", async () => {
  const { clock, source, objects } = watched();
  source.configMap("m", { a: "1" });
  await objects.read(ref, never);
  await clock.advance(idleMs - 1);
  await objects.read(ref, never);
  await clock.advance(idleMs - 1);
  assert.equal(source.watches, 1);
  await clock.advance(1);
  assert.equal(source.watches, 0);
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "1" }, "it starts again when asked");
});

test("Watch: an immutable object costs no watch once it was read", async () => {
  const { source, objects } = watched();
  source.configMap("m", { a: "1" }, { immutable: true });
  objects.hold(ref, "pod", testUid);
  await objects.read(ref, never);
  assert.equal(source.watches, 0);
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "1" });
});

test("Watch: what is told last is the truth, also when the server was set back to an older state", async () => {
  const { source, objects, changes } = watched();
  let tell: (object: object | undefined) => void = () => {};
  source.watch = (_ref, onObject) => {
    tell = onObject as typeof tell;
    return { [Symbol.dispose]() {} };
  };
  objects.hold(ref, "pod", testUid);
  tell({ metadata: { uid: "u", resourceVersion: "10" }, data: { a: "new" } });
  tell({ metadata: { uid: "u", resourceVersion: "9" }, data: { a: "old" } });
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "old" });
  assert.equal(changes.length, 1);
  tell({ metadata: { uid: "another", resourceVersion: "3" }, data: { a: "made anew" } });
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "made anew" });
});

function cached(ttlMs = 60_000) {
  const clock = new FakeClock();
  const source = new MemoryObjects();
  return { clock, source, objects: new CachedObjects(source, { clock, ttlMs: () => ttlMs, pollMs: 60_000 }) };
}

test("Cache: an older answer of a cache is checked, and believed when the server has nothing newer", async () => {
  const { clock, source, objects } = cached();
  const version = (resourceVersion: string) => ({
    metadata: { uid: "u", resourceVersion },
    data: { v: resourceVersion },
  });
  let [atHand, latest] = [version("10"), version("10")];
  source.get = (async (_ref: unknown, freshness: string) => (freshness === "cached" ? atHand : latest)) as never;
  objects.hold(ref, "pod");
  const read = async () => (await objects.read(ref, never))?.data?.["v"];
  assert.equal(await read(), "10");
  atHand = version("9");
  await clock.advance(60_000);
  assert.equal(await read(), "10");
  latest = version("9");
  await clock.advance(60_000);
  assert.equal(await read(), "9");
});

test("Cache: an answer is good for its time, that there is none included", async () => {
  const { clock, source, objects } = cached();
  objects.hold(ref, "pod");
  assert.equal(await objects.read(ref, never), undefined);
  source.configMap("m", { a: "1" });
  await clock.advance(59_999);
  assert.equal(await objects.read(ref, never), undefined);
  await clock.advance(1);
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "1" });
  assert.equal(source.gets, 2);
});

test("Cache: a new holder gets the present content", async () => {
  const { source, objects } = cached();
  source.configMap("m", { a: "1" });
  objects.hold(ref, "pod-1");
  await objects.read(ref, never);
  source.configMap("m", { a: "2" });
  objects.hold(ref, "pod-1");
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "1" });
  objects.hold(ref, "pod-2");
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "2" });
  objects.release(ref, "pod-1");
  objects.release(ref, "pod-2");
  assert.equal(objects.size, 0);
});

test("Cache: old content is better than none while the API server is away; without any the error shows", async () => {
  const { clock, source, objects } = cached();
  objects.hold(ref, "pod");
  source.outage = new Error("connection refused");
  await assert.rejects(objects.read(ref, never), /connection refused/);
  source.outage = undefined;
  source.configMap("m", { a: "1" });
  await objects.read(ref, never);
  source.outage = new Error("connection refused");
  await clock.advance(120_000);
  assert.deepEqual((await objects.read(ref, never))?.data, { a: "1" });
});

test("Cache: a time of zero asks each time", async () => {
  const { source, objects } = cached(0);
  objects.hold(ref, "pod");
  for (let turn = 0; turn < 3; turn++) await objects.read(ref, never);
  assert.equal(source.gets, 3);
});

test("Get: asks each time and remembers nothing", async () => {
  const source = new MemoryObjects();
  const objects = objectsBy("Get", source, { clock: new FakeClock(), syncFrequencyMs: 60_000 });
  source.configMap("m", { a: "1" });
  objects.hold(ref, "pod", testUid);
  for (let turn = 0; turn < 3; turn++) assert.deepEqual((await objects.read(ref, never))?.data, { a: "1" });
  assert.equal(source.gets, 3);
  assert.equal(source.watches, 0);
});

for (const [strategy, pollMs] of [
  ["Watch", undefined],
  ["Cache", 30_000],
  ["Get", 30_000],
] as const) {
  test(`${strategy}: ${pollMs === undefined ? "changes are told" : "holders must read again with each sync"}`, () => {
    const objects = objectsBy(strategy, new MemoryObjects(), { clock: new FakeClock(), syncFrequencyMs: 30_000 });
    assert.equal(objects.pollMs, pollMs);
  });
}
