import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { testPod } from "../../../test/support/pods.ts";
import { ApiError } from "../../connections/kube/index.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import {
  configHashAnnotation,
  configMirrorAnnotation,
  fullName,
  type IdentifiedPod,
  type Node,
} from "../../ground/model/index.ts";
import { isMirrorOf, MirrorPods } from "./mirror-pods.ts";
import { followMirrors } from "./mirror-wakes.ts";

const version = (hash: string): IdentifiedPod =>
  testPod({}, { name: "web-n1", uid: hash, annotations: { [configHashAnnotation]: hash } });
const mirrorOf = (pod: IdentifiedPod, uid: string): IdentifiedPod => ({
  ...pod,
  metadata: {
    ...pod.metadata,
    uid,
    annotations: { ...pod.metadata.annotations, [configMirrorAnnotation]: pod.metadata.uid },
  },
});

const refusal = (code: number, reason: string): ApiError =>
  new ApiError({ code, reason, message: `${code}`, request: "the test" });

/** The API's side of one mirror, and what the node knows. */
class World implements AsyncDisposable {
  readonly clock = new FakeClock();
  wanted: IdentifiedPod | undefined;
  mirror: IdentifiedPod | undefined;
  node: Node | undefined = { metadata: { name: "n1", uid: "node" } };
  /** Uids of versions that have not left the node. */
  leaving: string[] = [];
  isSourceKnown = true;
  made = 0;
  /** What the API answers to the next calls, in order; nothing: it does as it is told. */
  readonly refusals: { create: (ApiError | Error)[]; delete: (ApiError | Error)[] } = { create: [], delete: [] };
  readonly calls: string[] = [];
  readonly #scope = new TaskScope();
  readonly #mirrors = new MirrorPods(this.#scope, {
    clock: this.clock,
    log: silentLogger,
    staticPod: () => this.wanted,
    isTerminating: (_, wanted) => this.leaving.some((uid) => uid !== wanted?.metadata.uid),
    mirrorPod: () => this.mirror,
    isSourceKnown: () => this.isSourceKnown,
    node: () => this.node,
    client: {
      create: async (_resource: unknown, _ref: unknown, pod: IdentifiedPod) => {
        this.calls.push("create");
        const refused = this.refusals.create.shift();
        if (refused !== undefined) throw refused;
        this.mirror = { ...pod, metadata: { ...pod.metadata, uid: `m${++this.made}` } };
      },
      delete: async (_resource: unknown, _ref: unknown, options: object) => {
        assert.deepEqual(options, { gracePeriodSeconds: 0, preconditions: { uid: this.mirror?.metadata.uid } });
        this.calls.push(`delete ${this.mirror?.metadata.uid}`);
        const refused = this.refusals.delete.shift();
        if (refused !== undefined) throw refused;
        this.mirror = undefined;
      },
    } as never,
  });

  async wake(): Promise<string | undefined> {
    this.#mirrors.wake(fullName(version("any")));
    await settle(20);
    return this.mirror?.metadata.uid;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.stop();
  }
}

test("a mirror is what the static pod is, says whose mirror it is, and belongs to the Node", async () => {
  await using world = new World();
  world.wanted = testPod(
    { hostNetwork: true },
    { name: "web-n1", uid: "h1", labels: { app: "web" }, annotations: { [configHashAnnotation]: "h1", mine: "1" } },
  );
  await world.wake();
  assert.deepEqual(world.mirror, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web-n1",
      namespace: "default",
      uid: "m1",
      labels: { app: "web" },
      annotations: { [configHashAnnotation]: "h1", [configMirrorAnnotation]: "h1", mine: "1" },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "node", controller: true }],
    },
    spec: world.wanted.spec,
  });
  assert.equal(isMirrorOf(world.mirror ?? version("none"), world.wanted), true);
});

test("a mirror that is right is left alone, however often somebody wakes", async () => {
  await using world = new World();
  world.wanted = version("h1");
  for (let wake = 0; wake < 3; wake++) assert.equal(await world.wake(), "m1");
  assert.deepEqual(world.calls, ["create"]);
});

for (const [name, mirror] of [
  ["of an older version, by its hash,", mirrorOf(version("old"), "known")],
  [
    "that somebody has marked for deletion",
    mirrorOf(testPod({}, { ...version("h1").metadata, deletionTimestamp: "2026-01-01T00:00:00Z" }), "known"),
  ],
  [
    "without the mark of a mirror",
    testPod({}, { name: "web-n1", uid: "known", annotations: { [configHashAnnotation]: "h1" } }),
  ],
] as const) {
  test(`a mirror ${name} is replaced`, async () => {
    await using world = new World();
    world.wanted = version("h1");
    world.mirror = mirror;
    assert.equal(await world.wake(), "m1");
    assert.deepEqual(world.calls, ["delete known", "create"]);
  });
}

test("what others change in a mirror of the right version is none of ours", async () => {
  await using world = new World();
  world.wanted = version("h1");
  const mirror = mirrorOf(version("h1"), "known");
  world.mirror = { ...mirror, metadata: { ...mirror.metadata, labels: { added: "by somebody" } } };
  await world.wake();
  assert.deepEqual(world.calls, []);
});

for (const [name, node] of [
  ["is not known", undefined],
  ["has no uid yet", { metadata: { name: "n1" } }],
  ["is being deleted", { metadata: { name: "n1", uid: "node", deletionTimestamp: "2026-01-01T00:00:00Z" } }],
] as const) {
  test(`no mirror while the Node ${name}: nobody would ever collect it`, async () => {
    await using world = new World();
    world.wanted = version("h1");
    world.node = node;
    assert.equal(await world.wake(), undefined);
    assert.deepEqual(world.calls, []);
    world.node = { metadata: { name: "n1", uid: "node" } };
    assert.equal(await world.wake(), "m1");
  });
}

for (const [name, refusals, calls] of [
  ["somebody has made it", { create: [refusal(409, "AlreadyExists")], delete: [] }, ["delete known", "create"]],
  ["the old one has gone", { create: [], delete: [refusal(404, "NotFound")] }, ["delete known", "create"]],
  ["another one has its name", { create: [], delete: [refusal(409, "Conflict")] }, ["delete known", "create"]],
] as const) {
  test(`API: ${name}: as well, nothing is tried again`, async () => {
    await using world = new World();
    world.wanted = version("h1");
    world.mirror = mirrorOf(version("old"), "known");
    world.refusals.create.push(...refusals.create);
    world.refusals.delete.push(...refusals.delete);
    await world.wake();
    assert.deepEqual(world.calls, calls);
    assert.equal(world.clock.pendingTimers, 0);
  });
}

for (const [name, error] of [
  ["refuses", refusal(403, "Forbidden")],
  ["is in trouble", refusal(500, "InternalError")],
  ["can't be reached", new Error("connection refused")],
] as const) {
  test(`API: ${name}: tried again after 5 s, deleting before creating`, async () => {
    await using world = new World();
    world.wanted = version("h1");
    world.mirror = mirrorOf(version("old"), "known");
    world.refusals.delete.push(error);
    world.refusals.create.push(error);
    await world.wake();
    assert.deepEqual(world.calls, ["delete known"], "no second one beside the first");
    await world.clock.advance(4_999);
    assert.equal(world.calls.length, 1);
    await world.clock.advance(1);
    assert.deepEqual(world.calls.slice(1), ["delete known", "create"]);
    await world.clock.advance(5_000);
    assert.deepEqual(world.calls.slice(3), ["create"]);
    assert.equal(world.mirror?.metadata.uid, "m1");
  });
}

test("a mirror that is refused is tried again at the same pace, however often somebody wakes meanwhile", async () => {
  await using world = new World();
  world.wanted = version("h1");
  world.refusals.create.push(...Array.from({ length: 1_000 }, () => refusal(403, "Forbidden")));
  for (let woken = 0; woken < 50; woken++) await world.wake();
  assert.equal(world.clock.pendingTimers, 1);
  const before = world.calls.length;
  await world.clock.advance(20_000);
  assert.equal(world.calls.length - before, 4);
});

test("a mirror keeps its uid until the old version of its static pod has ended", async () => {
  await using world = new World();
  world.wanted = version("new");
  world.mirror = mirrorOf(version("old"), "known");
  world.leaving = ["old", "new"];
  assert.equal(await world.wake(), "known");
  world.leaving = ["new"];
  assert.equal(await world.wake(), "m1");
  assert.equal(world.mirror?.metadata.annotations?.[configMirrorAnnotation], "new");
});

test("a mirror that somebody deletes comes back at once; during the end of an old version, after it", async () => {
  await using world = new World();
  world.wanted = version("new");
  assert.equal(await world.wake(), "m1");
  world.mirror = undefined;
  world.leaving = ["old"];
  assert.equal(await world.wake(), undefined);
  world.leaving = [];
  assert.equal(await world.wake(), "m2");
});

test("the mirror of a removed static pod goes when the pod has", async () => {
  await using world = new World();
  world.mirror = mirrorOf(version("old"), "known");
  world.leaving = ["old"];
  assert.equal(await world.wake(), "known");
  world.leaving = [];
  assert.equal(await world.wake(), undefined);
});

test("a mirror whose pod may come yet stays until its source has spoken", async () => {
  await using world = new World();
  world.mirror = mirrorOf(version("h1"), "known");
  world.isSourceKnown = false;
  assert.equal(await world.wake(), "known");
  assert.deepEqual(world.calls, []);
  world.isSourceKnown = true;
  await world.clock.advance(5_000);
  await settle(20);
  assert.deepEqual(world.calls, ["delete known"]);
});

test("mirrors that were listed before anybody listened are looked at, too", () => {
  const woken: string[] = [];
  followMirrors(
    { wake: (name) => void woken.push(name) },
    {
      statuses: { onChange: () => () => {} },
      onLeft: () => {},
      wanted: () => [],
      apiPods: { list: () => [mirrorOf(version("h1"), "known"), testPod()], onChange: () => {}, onListed: () => {} },
      onNode: () => {},
    },
  );
  assert.deepEqual(woken, ["web-n1_default"]);
});
