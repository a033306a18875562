import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ApiObject } from "../object.ts";
import { type Change, Store } from "./store.ts";

const thing = (name: string, value = ""): ApiObject => ({ apiVersion: "v1", kind: "Thing", metadata: { name }, value });
const said = ({ type, object }: Change): string => `${type} ${object.metadata.name}`;

function newStore(keptChanges = 100): { store: Store; errors: unknown[] } {
  const errors: unknown[] = [];
  return { store: new Store({ keptChanges, onListenerError: (error) => errors.push(error) }), errors };
}

describe("store", () => {
  test("each write has a revision of its own, and deletion too", () => {
    const { store } = newStore();
    const first = store.put("things", thing("a"));
    const second = store.put("things", thing("a", "x"));
    const gone = store.delete("things", "a");
    const revisions = [first, second, gone].map((object) => Number(object?.metadata.resourceVersion));
    assert.deepEqual(revisions, [2, 3, 4]);
    assert.equal(store.published.revision, 4);
    assert.equal(store.get("things", "a"), undefined);
    assert.equal(store.delete("things", "a"), undefined);
  });

  test("an earlier state can be listed until it is forgotten", () => {
    const { store } = newStore();
    store.put("things", thing("a", "1"));
    store.put("things", thing("b"));
    const then = store.published.revision;
    store.put("things", thing("a", "2"));
    store.delete("things", "b");
    store.put("things", thing("c"));
    store.put("others", thing("z"));
    const names = (objects: readonly ApiObject[] | undefined): unknown =>
      objects?.map(({ metadata, value }) => [metadata.name, value]);
    assert.deepEqual(names(store.published.listAt("things", then)), [
      ["a", "1"],
      ["b", ""],
    ]);
    assert.deepEqual(names(store.list("things")), [
      ["a", "2"],
      ["c", ""],
    ]);
    store.published.compact();
    assert.equal(store.published.listAt("things", then), undefined);
    assert.deepEqual(names(store.published.listAt("things", store.published.revision)), [
      ["a", "2"],
      ["c", ""],
    ]);
  });

  test("changes of one resource since a revision, until they are forgotten", () => {
    const { store } = newStore(10);
    const start = store.published.revision;
    store.put("things", thing("a"));
    store.put("others", thing("z"));
    store.put("things", thing("a", "1"));
    assert.deepEqual(store.published.changesAfter(start, "things")?.map(said), ["ADDED a", "MODIFIED a"]);
    assert.deepEqual(store.published.changesAfter(store.published.revision, "things"), []);
    for (let index = 0; index < 20; index++) store.put("things", thing("b", String(index)));
    assert.equal(store.published.changesAfter(start, "things"), undefined);
    assert.ok((store.published.changesAfter(store.published.revision - 10, "things")?.length ?? 0) === 10);
  });

  test("a listener that writes does not upset the order others see", () => {
    const { store } = newStore();
    const seen: string[] = [];
    store.subscribe("things", ({ type, object }) => {
      if (type === "ADDED") store.put("things", { ...object, value: "changed" });
    });
    store.subscribe("things", (change) => seen.push(said(change)));
    store.put("things", thing("a"));
    assert.deepEqual(seen, ["ADDED a", "MODIFIED a"]);
  });

  test("a listener that fails harms neither the writer nor the others", () => {
    const { store, errors } = newStore();
    const seen: string[] = [];
    store.subscribe("things", () => {
      throw new Error("broken");
    });
    const stop = store.subscribe("*", (change) => seen.push(said(change)));
    store.put("things", thing("a"));
    store.put("things", thing("b"));
    stop();
    store.put("things", thing("c"));
    assert.deepEqual(seen, ["ADDED a", "ADDED b"]);
    assert.equal(errors.length, 3);
  });

  test("what is stored can't be changed from outside", () => {
    const { store } = newStore();
    const stored = store.put("things", thing("a"));
    assert.throws(() => Object.assign(stored.metadata, { name: "b" }), TypeError);
  });

  test("an object that can't be stored leaves no trace, not even a revision", () => {
    const { store } = newStore();
    const start = store.published.revision;
    let deep: object = {};
    for (let level = 0; level < 100_000; level++) deep = { deep };
    assert.throws(() => store.put("things", { ...thing("deep"), deep }), RangeError);
    assert.throws(() => store.put("things", thing("long", "x".repeat(2 ** 21))), /too large to be stored/);
    assert.equal(store.get("things", "deep"), undefined);
    store.put("things", thing("a"));
    assert.deepEqual(store.published.changesAfter(start, "things")?.map(said), ["ADDED a"]);
    assert.equal(store.published.revision, start + 1);
  });

  test("large objects that change often push each other out of the history, not the process out of memory", () => {
    const { store } = newStore(5000);
    const start = store.published.revision;
    const large = "x".repeat(2 ** 20);
    for (let turn = 0; turn < 200; turn++) store.put("things", thing("a", `${turn} ${large}`));
    assert.equal(store.published.changesAfter(start, "things"), undefined);
    const kept = store.published.changesAfter(store.published.compactedRevision, "things") ?? [];
    assert.ok(kept.length >= 40 && kept.length <= 64, `${kept.length} changes are kept`);
    assert.deepEqual(
      kept.map(({ revision }) => revision),
      kept.map((_, index) => store.published.compactedRevision + 1 + index),
    );
  });

  test("a version that is yet to come is as unknown as one that is forgotten", () => {
    const { store } = newStore();
    store.put("things", thing("a"));
    assert.equal(store.published.changesAfter(store.published.revision + 1, "things"), undefined);
    assert.equal(store.published.listAt("things", store.published.revision + 1), undefined);
  });
});
