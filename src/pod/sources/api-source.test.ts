import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeClock, settleFiles } from "../../../test/support/fake-clock.ts";
import { testPod } from "../../../test/support/pods.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { containerHash, type IdentifiedPod, type PodUid } from "../../ground/model/index.ts";
import { ApiSource } from "./api-source.ts";
import { OfflineFile } from "./offline-file.ts";
import type { StartedPod } from "./started-pod.ts";

const pod = (name: string, more: Partial<IdentifiedPod["metadata"]> = {}): IdentifiedPod =>
  testPod({}, { name, uid: name, ...more });
const runs = (name: string): StartedPod => ({
  namespace: "default",
  name,
  uid: name,
  source: "api",
  startedAtMs: 0,
  isLive: true,
  labels: {},
  containerHashes: new Map([["main", containerHash({ name: "main", image: "busybox:1" })]]),
});

interface Delivery {
  readonly pods: readonly string[];
  /** Undefined: the source stands by it. Else the pods that have to wait. */
  readonly held: readonly string[] | undefined;
}

class World implements AsyncDisposable {
  readonly clock = new FakeClock(undefined, settleFiles);
  readonly delivered: Delivery[] = [];
  readonly source: ApiSource;
  pods: IdentifiedPod[] = [];
  synced = false;
  started: readonly StartedPod[] | Error = [];
  nodeUid: string | undefined = "node-1";
  readonly #scope = new TaskScope();

  constructor(path: string, owner = { nodeName: "n1", server: "api:6443" }) {
    const ports = { clock: this.clock, log: silentLogger };
    const offline = new OfflineFile(path, owner, { ...ports, nodeUid: () => this.nodeUid });
    this.source = new ApiSource({
      ...ports,
      offline,
      hasSynced: () => this.synced,
      pods: () => this.pods,
      nodeUid: async () => this.nodeUid,
      startedPods: async () => {
        if (this.started instanceof Error) throw this.started;
        return this.started;
      },
      deliver: async (pods, provisional) => {
        const uids = pods.map(({ metadata }) => metadata.uid);
        const held = provisional && uids.filter((uid) => provisional.hold(uid as PodUid) !== undefined);
        this.delivered.push({ pods: uids, held });
      },
    });
    this.#scope.spawn("source", (signal) => this.source.run(signal));
    this.#scope.spawn("file", (signal) => offline.run(signal));
  }

  async want(...pods: IdentifiedPod[]): Promise<void> {
    this.pods = pods;
    this.synced = true;
    this.source.wake();
    await this.clock.advance(2_000);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.stop();
  }
}

async function place(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-api-source-"));
  t.after(() => rm(directory, { recursive: true }));
  return join(directory, "deep", "pods.json");
}

test("delivers the whole list after the first sync and after every change", async (t) => {
  await using world = new World(await place(t));
  await world.want(pod("a"));
  await world.want(pod("a"), pod("b"));
  assert.deepEqual(world.delivered, [
    { pods: ["a"], held: undefined },
    { pods: ["a", "b"], held: undefined },
  ]);
});

test("keeps the list on disk, for nobody else to read", async (t) => {
  const path = await place(t);
  await using world = new World(path);
  await world.want(pod("a"));
  assert.equal(JSON.parse(await readFile(path, "utf8")).pods[0].metadata.name, "a");
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test("echoes of our own statuses are not written; wishes, and ends, are, several at a time", async (t) => {
  const path = await place(t);
  await using world = new World(path);
  await world.want(pod("a"), pod("b"));
  const written = async (): Promise<number> => (await stat(path)).ino + (await stat(path)).mtimeMs;
  const first = await written();
  for (let echo = 1; echo <= 20; echo++) {
    const podIP = `10.0.0.${echo}`;
    await world.want({ ...pod("a", { resourceVersion: String(echo) }), status: { phase: "Running", podIP } }, pod("b"));
  }
  assert.equal(await written(), first);
  await world.want({ ...pod("a"), status: { phase: "Succeeded" } }, pod("b"));
  assert.notEqual(await written(), first);
  const saved = JSON.parse(await readFile(path, "utf8"));
  assert.deepEqual([saved.pods.length, saved.pods[0].status, saved.ended], [1, undefined, ["a"]]);
});

test("a list without changes is confirmed every hour", async (t) => {
  const path = await place(t);
  await using world = new World(path);
  await world.want(pod("a"));
  const confirmed = async (): Promise<number> => Date.parse(JSON.parse(await readFile(path, "utf8")).confirmedAt);
  const before = await confirmed();
  await world.clock.advance(2 * 3_600_000);
  assert.ok((await confirmed()) - before >= 3_600_000);
});

test("without the API: what runs goes on, what does not run waits, and the API's word replaces it all", async (t) => {
  const path = await place(t);
  {
    await using first = new World(path);
    await first.want(pod("runs"), pod("stopped"));
  }
  await using second = new World(path);
  second.started = [runs("runs")];
  await second.clock.advance(9_000);
  assert.deepEqual(second.delivered, [], "the API gets time to answer");
  await second.clock.advance(2_000);
  assert.deepEqual(second.delivered, [{ pods: ["runs", "stopped"], held: ["stopped"] }]);
  await second.want(pod("new"));
  assert.deepEqual(second.delivered.slice(1), [{ pods: ["new"], held: undefined }]);
});

test("a list of a Node that was made anew since starts nothing; what runs goes on", async (t) => {
  const path = await place(t);
  const ownerReferences = [{ kind: "DaemonSet", apiVersion: "apps/v1", name: "d", uid: "d", controller: true }];
  const pods = [pod("runs"), pod("daemon", { ownerReferences })];
  {
    await using first = new World(path);
    first.nodeUid = undefined;
    await first.want(...pods);
    first.nodeUid = "node-1";
    await first.want(...pods);
    assert.equal(JSON.parse(await readFile(path, "utf8")).nodeUid, "node-1", "written as soon as it is known");
  }
  for (const [nodeUid, held] of [
    ["node-1", []],
    ["node-2", ["daemon"]],
  ] as const) {
    await using next = new World(path);
    next.nodeUid = nodeUid;
    next.started = [runs("runs")];
    await next.clock.advance(12_000);
    assert.deepEqual(next.delivered, [{ pods: ["runs", "daemon"], held }], nodeUid);
  }
});

test("nothing is assumed before the runtime has said what runs", async (t) => {
  const path = await place(t);
  {
    await using first = new World(path);
    await first.want(pod("runs"));
  }
  await using second = new World(path);
  second.started = new Error("no runtime");
  await second.clock.advance(60_000);
  assert.deepEqual(second.delivered, []);
  second.started = [runs("runs")];
  await second.clock.advance(10_000);
  assert.deepEqual(second.delivered, [{ pods: ["runs"], held: [] }]);
});

for (const [what, owner] of [
  ["another node", { nodeName: "n2", server: "api:6443" }],
  ["another API server", { nodeName: "n1", server: "other:6443" }],
] as const) {
  test(`the list of ${what} is no list`, async (t) => {
    const path = await place(t);
    {
      await using first = new World(path);
      await first.want(pod("runs"));
    }
    await using second = new World(path, owner);
    second.started = [runs("runs")];
    await second.clock.advance(60_000);
    assert.deepEqual(second.delivered, []);
  });
}

for (const content of ["[{", "", "null", "[]", '{"version":1}', JSON.stringify([pod("a")])]) {
  test(`a damaged list on disk, or one of an older format, is no list: ${content.slice(0, 20)}`, async (t) => {
    const path = await place(t);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, content);
    await using world = new World(path);
    await world.clock.advance(20_000);
    assert.deepEqual(world.delivered, []);
  });
}
