import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeClock, settleFiles } from "../../../test/support/fake-clock.ts";
import { testPod } from "../../../test/support/pods.ts";
import { withoutDescriptors } from "../../../test/support/without-descriptors.ts";
import { savePrivateFile, silentLogger, TaskScope } from "../../ground/base/index.ts";
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

/** A whole list: `held` undefined when the source stands by it, else the pods that have to wait. Or one change. */
type Delivery =
  | { readonly pods: readonly string[]; readonly held: readonly string[] | undefined }
  | { readonly put: string }
  | { readonly gone: string };

class World implements AsyncDisposable {
  readonly clock = new FakeClock(undefined, settleFiles);
  readonly delivered: Delivery[] = [];
  readonly source: ApiSource;
  readonly offline: OfflineFile;
  pods: readonly IdentifiedPod[] = [];
  synced = false;
  /** How often the list was written to disk. */
  writes = 0;
  /** Of the last write. */
  longestPiece = 0;
  started: readonly StartedPod[] | Error = [];
  nodeUid: string | undefined = "node-1";
  /** Since when the API server says nothing, on the monotonic clock. */
  silentSince: number | undefined;
  /** Settles when the reader of the changes has time. */
  reader: Promise<void> = Promise.resolve();
  readonly #scope = new TaskScope();

  constructor(path: string, owner = { nodeName: "n1", server: "api:6443" }) {
    const ports = { clock: this.clock, log: silentLogger };
    this.offline = new OfflineFile(path, owner, {
      ...ports,
      nodeUid: () => this.nodeUid,
      heardAt: () => this.silentSince ?? this.clock.monotonic(),
      pods: () => (this.synced ? this.pods : undefined),
      save: async (to, text) => {
        this.writes++;
        const pieces = typeof text === "string" ? [text] : [...text];
        this.longestPiece = Math.max(...pieces.map(({ length }) => length));
        await savePrivateFile(to, pieces);
      },
    });
    this.source = new ApiSource({
      ...ports,
      offline: this.offline,
      hasSynced: () => this.synced,
      pods: () => this.pods,
      nodeUid: async () => this.nodeUid,
      startedPods: async () => {
        if (this.started instanceof Error) throw this.started;
        return this.started;
      },
      wanted: {
        set: async (_, pods, _signal, provisional) => {
          const uids = pods.map(({ metadata }) => metadata.uid);
          const held = provisional && uids.filter((uid) => provisional.hold(uid as PodUid) !== undefined);
          this.delivered.push({ pods: uids, held });
        },
        change: async (_, change) => {
          await this.reader;
          this.delivered.push(change.type === "gone" ? { gone: change.uid } : { put: change.pod.metadata.uid });
        },
      },
    });
    this.#scope.spawn("source", (signal) => this.source.run(signal));
    this.#scope.spawn("file", (signal) => this.offline.run(signal));
  }

  /** The API server wants exactly these: listed at first, later told change by change, as the informer does. */
  async want(...pods: IdentifiedPod[]): Promise<void> {
    if (this.synced) this.tell(...pods);
    else this.list(...pods);
    await this.clock.advance(2_000);
  }

  list(...pods: IdentifiedPod[]): void {
    this.tell(...pods);
    this.synced = true;
    this.source.listed();
  }

  tell(...pods: IdentifiedPod[]): void {
    const before = new Map(this.pods.map((known) => [known.metadata.uid, known]));
    const after = new Set(pods.map(({ metadata }) => metadata.uid));
    this.pods = pods;
    for (const [uid, object] of before) if (!after.has(uid)) this.source.changed({ type: "deleted", object });
    for (const object of pods) {
      const old = before.get(object.metadata.uid);
      if (old === undefined) this.source.changed({ type: "added", object });
      else if (old !== object) this.source.changed({ type: "updated", old, object });
    }
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

test("hands on the whole list when the API was listed, else what changed and nothing else", async (t) => {
  await using world = new World(await place(t));
  const [a, b, c] = [pod("a"), pod("b"), pod("c")];
  await world.want(a);
  await world.want(a, b);
  await world.want(a, { ...b, status: { phase: "Running" } });
  await world.want(world.pods[1] ?? b, c);
  world.list(c);
  await world.clock.advance(0);
  assert.deepEqual(world.delivered, [
    { pods: ["a"], held: undefined },
    { put: "b" },
    { put: "b" },
    { gone: "a" },
    { put: "c" },
    { pods: ["c"], held: undefined },
  ]);
});

test("a slow reader gets the newest of each pod, and a new list in place of the changes before it", async (t) => {
  await using world = new World(await place(t));
  const [a, b] = [pod("a"), pod("b")];
  await world.want(a, b);
  let hurry = (): void => {};
  world.reader = new Promise((resolve) => {
    hurry = resolve;
  });
  await world.want(pod("a"), b);
  for (let change = 0; change < 10; change++) await world.want(pod("a"), pod("b"));
  await world.want(...world.pods.slice(1));
  hurry();
  await world.clock.advance(0);
  assert.deepEqual(world.delivered.slice(1), [{ put: "a" }, { gone: "a" }, { put: "b" }]);

  world.reader = new Promise((resolve) => {
    hurry = resolve;
  });
  await world.want(pod("b"));
  await world.want(pod("b"), pod("c"));
  world.list(pod("c"));
  hurry();
  await world.clock.advance(0);
  assert.deepEqual(world.delivered.slice(4), [{ put: "b" }, { pods: ["c"], held: undefined }]);
});

test("keeps the list on disk, for nobody else to read", async (t) => {
  const path = await place(t);
  await using world = new World(path);
  await world.want(pod("a"));
  assert.equal(JSON.parse(await readFile(path, "utf8")).pods[0].metadata.name, "a");
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test("large pods are written one after the other, with time for everybody else in between", async (t) => {
  const path = await place(t);
  await using world = new World(path);
  const large = Array.from({ length: 40 }, (_, index) =>
    pod(`p${index}`, { annotations: { text: "x".repeat(200_000) } }),
  );
  await world.want(...large);
  assert.ok(world.longestPiece < 2 * 200_000, `${world.longestPiece} characters at once`);
  const saved = JSON.parse(await readFile(path, "utf8"));
  assert.deepEqual(
    saved.pods.map((each: IdentifiedPod) => [each.metadata.name, each.metadata.annotations?.["text"]?.length]),
    large.map(({ metadata }) => [metadata.name, 200_000]),
  );
});

test("echoes of our own statuses are not written; wishes, ends and another Node are, several at a time", async (t) => {
  const path = await place(t);
  await using world = new World(path);
  const others = Array.from({ length: 109 }, (_, index) => pod(`p${index}`));
  await world.want(pod("a"), ...others);
  assert.equal(world.writes, 1);
  for (let echo = 1; echo <= 100; echo++) {
    const podIP = `10.0.0.${echo}`;
    const resourceVersion = String(echo);
    await world.want({ ...pod("a", { resourceVersion }), status: { phase: "Running", podIP } }, ...others);
  }
  world.list(...world.pods);
  await world.clock.advance(2_000);
  assert.equal(world.writes, 1, "a hundred echoes and another list");
  await world.want({ ...pod("a"), status: { phase: "Succeeded" } }, ...others);
  assert.equal(world.writes, 2, "an end");
  const saved = JSON.parse(await readFile(path, "utf8"));
  assert.deepEqual([saved.pods.length, saved.pods[0].status, saved.ended], [109, undefined, ["a"]]);
  world.tell(...others);
  world.tell(...others, pod("b"));
  world.tell(...others, pod("b", { labels: { of: "another" } }));
  await world.clock.advance(2_000);
  assert.equal(world.writes, 3, "three wishes at once");
  const controller = { apiVersion: "apps/v1", kind: "DaemonSet", name: "d", uid: "d", controller: true };
  await world.want(...others, pod("b", { labels: { of: "another" }, ownerReferences: [controller] }));
  assert.equal(world.writes, 4, "a new owner, by which is decided what may start");
  world.nodeUid = "node-2";
  world.offline.changed();
  await world.clock.advance(2_000);
  assert.equal(world.writes, 5, "another Node");
});

test("nothing is written before the API has listed its pods", async (t) => {
  await using world = new World(await place(t));
  world.tell(pod("a"));
  world.offline.changed();
  await world.clock.advance(2 * 3_600_000);
  assert.equal(world.writes, 0);
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

test("a list is not confirmed while the API server is silent, however often it is written", async (t) => {
  const path = await place(t);
  await using world = new World(path);
  await world.want(pod("a"));
  const confirmed = async (): Promise<number> => Date.parse(JSON.parse(await readFile(path, "utf8")).confirmedAt);
  world.silentSince = world.clock.monotonic();
  const heard = world.clock.now();
  await world.clock.advance(30 * 3_600_000);
  world.nodeUid = "node-2";
  world.offline.changed();
  await world.clock.advance(2_000);
  assert.equal(JSON.parse(await readFile(path, "utf8")).nodeUid, "node-2");
  assert.equal(await confirmed(), heard);
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
  await second.want(...second.pods, pod("newer"));
  assert.deepEqual(second.delivered.slice(1), [{ pods: ["new"], held: undefined }, { put: "newer" }]);
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
    first.offline.changed();
    await first.clock.advance(2_000);
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

test("a list that can't be read for want of descriptors is read when there are some again", async (t) => {
  const path = await place(t);
  {
    await using first = new World(path);
    await first.want(pod("runs"));
  }
  await using second = new World(path);
  second.started = [runs("runs")];
  {
    using _ = withoutDescriptors();
    await second.clock.advance(30_000);
    assert.deepEqual(second.delivered, []);
  }
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
