import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/pods.ts";
import { deleting, pod, rejected, uid, World } from "../../../test/support/registry-world.ts";
import { configMirrorAnnotation, configSourceAnnotation, fullName } from "../../ground/model/index.ts";

test("ADD: an admitted pod is handed to its worker, and shown", () => {
  const world = new World();
  world.apply("ADD", pod("a"), pod("b"));
  assert.deepEqual(world.taken, ["a", "b"]);
  assert.deepEqual(world.announced, ["a", "b"]);
  assert.deepEqual(world.judged, ["a", "b beside a"]);
  assert.equal(world.registry.get(uid("a"))?.metadata.name, "a");
  assert.deepEqual([...world.registry.all()].map(fullName), ["a_default", "b_default"]);
});

test("ADD without pods: a source that wants nothing changes nothing", () => {
  const world = new World();
  world.apply("ADD");
  assert.deepEqual([world.taken, world.judged], [[], []]);
});

for (const op of ["UPDATE", "DELETE"] as const) {
  test(`${op}: the worker gets the new version, nobody is asked again`, () => {
    const world = new World();
    world.apply("ADD", pod("a"));
    world.apply(op, pod("a", op === "DELETE" ? deleting : { labels: { version: "2" } }));
    assert.equal(world.worked("a")?.metadata.deletionTimestamp !== undefined, op === "DELETE");
    assert.equal(world.worked("a"), world.registry.get(uid("a")));
    assert.deepEqual([world.judged.length, world.announced.length], [1, 2]);
  });
}

for (const [name, gates, reaches] of [
  ["a status alone does not reach the worker", [], false],
  ["a status may open a readiness gate", [{ conditionType: "example.com/ready" }], true],
] as const) {
  test(`RECONCILE: ${name}`, () => {
    const world = new World();
    const before = testPod({ readinessGates: gates.map((gate) => ({ ...gate })) }, { uid: "a" });
    const after = { ...before, status: { phase: "Running" } };
    world.apply("ADD", before);
    world.apply("RECONCILE", after);
    assert.equal(world.worked("a"), reaches ? after : before);
    assert.equal(world.registry.get(uid("a")), after);
    assert.deepEqual(world.announced, ["a", "a"]);
  });
}

for (const [name, of, grace] of [
  ["with its own grace", pod("a"), 30],
  ["with the grace it was deleted with", pod("a", { ...deleting, deletionGracePeriodSeconds: 3 }), 3],
  ["with the customary grace", testPod({ terminationGracePeriodSeconds: undefined }, { uid: "a" }), 30],
] as const) {
  test(`REMOVE: the worker ends the pod ${name}`, () => {
    const world = new World();
    world.apply("ADD", of);
    world.apply("REMOVE", of);
    assert.deepEqual(world.workers.terminated, [`a deleted ${grace}`]);
    assert.equal(world.registry.get(uid("a")), undefined);
    assert.deepEqual(world.forgotten, [], "its worker does so when it has gone");
  });
}

test("REMOVE: a pod that never came to a worker is forgotten at once", () => {
  const world = new World();
  world.verdict = () => rejected;
  world.apply("ADD", pod("a"));
  world.apply("REMOVE", pod("a"));
  assert.deepEqual([world.forgotten, world.taken], [["a"], []]);
});

test("a rejected pod fails with reason and message, and stays so however often its source names it", () => {
  const world = new World();
  world.verdict = ({ metadata }) => (metadata.uid === "a" ? rejected : { type: "admitted" });
  world.apply("ADD", pod("a"), pod("b"));
  world.verdict = () => ({ type: "admitted" });
  world.apply("ADD", pod("a"));
  world.apply("UPDATE", pod("a", { labels: { version: "2" } }));
  world.apply("RECONCILE", pod("a"));
  world.registry.reconsider();
  assert.deepEqual(world.taken, ["b"]);
  assert.deepEqual(world.statuses, ["a Failed OutOfcpu Pod was rejected: no cpu left"]);
  assert.deepEqual(world.events, ["a Warning OutOfcpu no cpu left"]);
  assert.deepEqual(world.judged, ["a", "b"], "what was refused holds nothing");
});

test("a rejected pod that is deleted goes to a worker, which tells the API of its end", () => {
  const world = new World();
  world.verdict = () => rejected;
  world.apply("ADD", pod("a"));
  world.apply("DELETE", pod("a", deleting));
  assert.deepEqual(world.taken, ["a"]);
});

test("the same name with another uid is another pod: the old one ends, the new one is judged by itself", () => {
  const world = new World();
  const [old, next] = [pod("old", { name: "web" }), pod("new", { name: "web" })];
  world.apply("ADD", old);
  world.apply("REMOVE", old);
  world.apply("ADD", next);
  assert.deepEqual(world.workers.terminated, ["old deleted 30"]);
  assert.equal(world.worked("new"), next);
  assert.equal(world.registry.get(uid("old")), undefined);
  assert.deepEqual(world.judged, ["old", "new"], "the old one is not wanted any more, and does not count");
});

test("the same name with another uid: what was refused to the old one is not refused to the new one", () => {
  const world = new World();
  world.verdict = ({ metadata }) => (metadata.uid === "old" ? rejected : { type: "admitted" });
  world.apply("ADD", pod("old", { name: "web" }));
  world.apply("REMOVE", pod("old", { name: "web" }));
  world.apply("ADD", pod("new", { name: "web" }));
  assert.deepEqual(world.taken, ["new"]);
});

test("static pods of one full name: both go to workers, and a name found in the runtime is unclaimed until taken", () => {
  const world = new World();
  const annotations = { [configSourceAnnotation]: "file" };
  const [old, next] = [pod("old", { name: "web", annotations }), pod("new", { name: "web", annotations })];
  world.registry.runtimeChanged(uid("old"), "web_default");
  assert.equal(world.wanted.isUnclaimed("web_default"), true);
  world.apply("ADD", next);
  assert.equal(world.wanted.isUnclaimed("web_default"), true, "the new one is not the one that runs");
  world.apply("ADD", old);
  assert.equal(world.wanted.isUnclaimed("web_default"), false);
  assert.deepEqual(world.taken, ["new", "old"]);
  assert.equal(world.wanted.isUnclaimed("other_default"), false);
});

test("mirror pods are no pods of ours", () => {
  const world = new World();
  const mirror = pod("m", { annotations: { [configMirrorAnnotation]: "hash" } });
  for (const op of ["ADD", "UPDATE", "RECONCILE", "REMOVE"] as const) world.apply(op, mirror);
  assert.deepEqual([world.taken, world.announced, world.judged], [[], [], []]);
});

test("an exception inside admission refuses that pod, and no other", () => {
  const world = new World();
  world.verdict = ({ metadata }) => {
    if (metadata.uid === "odd") throw new Error("Cannot convert abc to a BigInt");
    return { type: "admitted" };
  };
  world.apply("ADD", pod("a"), pod("odd"), pod("b"));
  assert.deepEqual(world.taken, ["a", "b"]);
  assert.deepEqual(world.statuses, [
    "odd Failed UnexpectedAdmissionError Pod was rejected: Cannot convert abc to a BigInt",
  ]);
});

test("an exception anywhere else blocks that pod, which is tried again more and more slowly", async () => {
  const world = new World();
  world.workers.broken.add("odd");
  world.apply("ADD", pod("odd"), pod("b"));
  assert.deepEqual(world.taken, ["b"]);
  assert.equal(world.block("odd"), "UnexpectedError: handling its ADD failed: no way");
  const triesAt: number[] = [];
  world.verdict = () => ({ type: "admitted" });
  world.workers.upsert = (): void => {
    triesAt.push(world.clock.monotonic() / 1_000);
    throw new Error("no way");
  };
  await world.clock.advance(200_000);
  assert.deepEqual(triesAt, [1, 3, 7, 15, 31, 63, 123, 183]);
});

test("a change that comes meanwhile has its own try, and the failed one none any more", async () => {
  const world = new World();
  world.workers.broken.add("a");
  world.apply("ADD", pod("a"));
  world.workers.broken.clear();
  const newer = pod("a", { labels: { version: "2" } });
  world.apply("UPDATE", newer);
  assert.equal(world.worked("a"), newer);
  world.workers.pods.clear();
  await world.clock.advance(120_000);
  assert.deepEqual(world.taken, []);
});

test("a pod that could not be taken is tried again, although its status changes meanwhile", async () => {
  const world = new World();
  world.workers.broken.add("a");
  world.apply("ADD", pod("a"));
  world.apply("RECONCILE", pod("a"));
  world.workers.broken.clear();
  await world.clock.advance(2_000);
  assert.deepEqual(world.taken, ["a"]);
});

test("a pod that could not be decided about is asked about in its next version, too", async () => {
  const world = new World();
  world.verdict = () => rejected;
  world.lookFails = true;
  world.apply("ADD", pod("a"));
  world.lookFails = false;
  world.apply("UPDATE", pod("a", { labels: { version: "2" } }));
  assert.deepEqual([world.taken, world.judged], [[], ["a"]]);
});

test("a removal that failed is tried again, although the pod is known no longer", async () => {
  const world = new World();
  world.apply("ADD", pod("a"));
  world.workers.broken.add("a");
  world.apply("REMOVE", pod("a"));
  world.workers.broken.clear();
  await world.clock.advance(1_000);
  assert.deepEqual(world.workers.terminated, ["a deleted 30"]);
});
