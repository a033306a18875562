import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeClock, settleFiles } from "../../../test/support/fake-clock.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import type { Node } from "../../ground/model/index.ts";
import { KnownNode } from "./known-node.ts";

const node: Node = {
  metadata: { name: "n1", uid: "u1", labels: { disk: "ssd" }, resourceVersion: "7" },
  spec: { taints: [{ key: "k", effect: "NoExecute" }] },
  status: { conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: "2026-01-01T00:00:00Z" }] },
};

async function world(t: TestContext, path?: string) {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-known-node-"));
  const scope = new TaskScope();
  t.after(async () => {
    await scope.stop();
    await rm(directory, { recursive: true });
  });
  const clock = new FakeClock(undefined, settleFiles);
  const file = path ?? join(directory, "deep", "node.json");
  const ownNode = (): Node => ({ metadata: { name: "n1", labels: { own: "yes" } } });
  const known = new KnownNode({ clock, log: silentLogger, nodeName: "n1", path: file, ownNode });
  scope.spawn("known node", (signal) => known.run(signal));
  return { clock, known, file };
}

test("nothing is known until the API server has shown the Node", async (t) => {
  const { clock, known } = await world(t);
  const source = (): string | undefined => known.knowledge?.from;
  await clock.advance(9_999);
  assert.equal(source(), undefined);
  let told = 0;
  known.onChange(() => told++);
  known.learn(node);
  assert.equal(source(), "api");
  await clock.advance(20_000);
  assert.equal(source(), "api");
  assert.equal(told, 1);
});

test("the last one known counts while the API server is away, for nobody else to read", async (t) => {
  const first = await world(t);
  first.known.learn(node);
  await first.known.flushed();
  assert.equal((await stat(first.file)).mode & 0o777, 0o600);
  const second = await world(t, first.file);
  await second.clock.advance(10_000);
  assert.equal(second.known.knowledge?.from, "disk");
  assert.deepEqual(second.known.knowledge?.node.metadata?.labels, { disk: "ssd" });
  assert.deepEqual(second.known.knowledge?.node.spec?.taints, node.spec?.taints);
  second.known.learn(node);
  assert.equal(second.known.knowledge?.from, "api");
});

for (const [what, content] of [
  ["damaged", "{"],
  ["another node's", JSON.stringify({ metadata: { name: "n2" } })],
  ["empty", ""],
  ["no Node", "null"],
] as const) {
  test(`a file that is ${what} is none: the settings count`, async (t) => {
    const first = await world(t);
    first.known.learn(node);
    await first.known.flushed();
    await writeFile(first.file, content);
    const second = await world(t, first.file);
    await second.clock.advance(10_000);
    assert.equal(second.known.knowledge?.from, "settings");
    assert.deepEqual(second.known.knowledge?.node.metadata?.labels, { own: "yes" });
  });
}

test("heartbeats do not write to the disk", async (t) => {
  const { known, file } = await world(t);
  known.learn(node);
  await known.flushed();
  const written = (await stat(file)).mtimeMs;
  const { ino } = await stat(file);
  const later = { ...node, metadata: { ...node.metadata, resourceVersion: "8" } };
  known.learn({ ...later, status: { conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: "later" }] } });
  await known.flushed();
  assert.deepEqual([(await stat(file)).ino, (await stat(file)).mtimeMs], [ino, written]);
  known.learn({ ...later, metadata: { ...later.metadata, labels: {} } });
  await known.flushed();
  assert.deepEqual(JSON.parse(await readFile(file, "utf8")).metadata.labels, {});
});
