import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { type Logger, silentLogger } from "../../ground/base/index.ts";
import type { ContainerId, PodUid } from "../../ground/model/index.ts";
import { FileProbeStore } from "./file-store.ts";
import type { SavedResult } from "./ports.ts";

const uid = "u1" as PodUid;
const result: SavedResult = { container: "web", kind: "readiness", id: "c1" as ContainerId, result: "success" };
let root = "";
let warnings: string[] = [];
let store: FileProbeStore;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "probe-store-"));
  warnings = [];
  const log: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) };
  store = new FileProbeStore(root, log);
  mkdirSync(join(root, "u1"));
});
afterEach(() => rmSync(root, { recursive: true }));

test("gives back what was saved last, from a file of its owner's", async () => {
  assert.equal(store.load(uid), undefined);
  await store.save(uid, [{ ...result, result: "failure" }]);
  await store.save(uid, [result]);
  assert.deepEqual(store.load(uid), [result]);
  assert.deepEqual(readdirSync(join(root, "u1")), ["nodelet-probes.json"]);
  assert.equal(statSync(join(root, "u1", "nodelet-probes.json")).mode & 0o777, 0o600);
  assert.deepEqual(warnings, []);
});

test("does not bring back the directory of a pod that is gone", async () => {
  await store.save("gone" as PodUid, [result]);
  assert.equal(existsSync(join(root, "gone")), false);
  assert.deepEqual(warnings, []);
});

test("leaves nothing behind", async () => {
  await store.save(uid, [result]);
  await store.remove(uid);
  await store.remove(uid);
  assert.deepEqual(readdirSync(join(root, "u1")), []);
});

for (const [name, text] of [
  ["half a file", '{"version":1,"resul'],
  ["another document", "[]"],
  ["no list", '{"results":7}'],
  ["an unknown kind", '{"results":[{"container":"web","kind":"mood","id":"c1","result":"success"}]}'],
  ["an unknown result", '{"results":[{"container":"web","kind":"readiness","id":"c1","result":"maybe"}]}'],
  ["null", '{"results":[null]}'],
] as const) {
  test(`${name} is ignored with a warning`, () => {
    writeFileSync(join(root, "u1", "nodelet-probes.json"), text);
    assert.equal(store.load(uid), undefined);
    assert.equal(warnings.length, 1);
  });
}

test("a disk that refuses is reported, not thrown", async () => {
  mkdirSync(join(root, "u1", "nodelet-probes.json"));
  await store.save(uid, [result]);
  await store.remove(uid);
  assert.deepEqual(warnings, [
    "Cannot save probe results; a restart of the agent may show the pod as not ready",
    "Cannot remove saved probe results",
  ]);
  assert.deepEqual(readdirSync(join(root, "u1")), ["nodelet-probes.json"]);
});
