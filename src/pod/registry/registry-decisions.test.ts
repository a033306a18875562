// When the registry decides about pods: not before it knows enough, and not to the cost of those who run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deleting, pod, rejected, uid, World } from "../../../test/support/registry-world.ts";
import { fullName } from "../../ground/model/index.ts";

test("nothing is decided before the runtime has said what it has; what it has is taken without being asked about", () => {
  const world = new World();
  world.isRuntimeKnown = false;
  world.verdict = () => rejected;
  world.apply("ADD", pod("newcomer"), pod("runs"));
  assert.deepEqual([world.taken, world.statuses], [[], []]);
  assert.match(world.block("runs") ?? "", /waiting for the container runtime to say what runs already/);
  assert.equal(world.arePodsKnown(), false);
  world.isRuntimeKnown = true;
  world.registry.runtimeChanged(uid("runs"), "runs_default");
  assert.equal(world.arePodsKnown(), false);
  world.registry.reconsider();
  assert.deepEqual([world.taken, world.kept], [["runs"], ["runs"]]);
  assert.deepEqual(world.statuses, ["newcomer Failed OutOfcpu Pod was rejected: no cpu left"]);
  assert.equal(world.arePodsKnown(), true);
  assert.equal(world.wanted.isUnclaimed("runs_default"), false);
});

for (const [name, of] of [
  ["is to end", pod("a", deleting)],
  ["has succeeded", { ...pod("a"), status: { phase: "Succeeded" } }],
  ["has failed", { ...pod("a"), status: { phase: "Failed" } }],
] as const) {
  test(`a pod that ${name} asks for nothing: it is taken without being asked about, at once`, () => {
    const world = new World();
    world.isRuntimeKnown = false;
    world.apply("ADD", of);
    assert.deepEqual([world.taken, world.judged], [["a"], []]);
  });
}

test("those that were here before come before newcomers of the same list: what runs first", () => {
  const world = new World();
  world.wereHere.add("known");
  world.registry.runtimeChanged(uid("runs"));
  world.apply("ADD", pod("new"), pod("known"), pod("runs"));
  assert.deepEqual(world.taken, ["runs", "known", "new"]);
});

test("a running pod that admission can't reckon with stays, and is left out when others are judged", () => {
  const world = new World();
  world.verdict = ({ metadata }) => {
    if (metadata.uid === "odd") throw new Error("what it asks for makes no sense");
    return { type: "admitted" };
  };
  world.registry.runtimeChanged(uid("odd"));
  world.apply("ADD", pod("odd"));
  world.apply("ADD", pod("b"));
  assert.deepEqual([world.taken, world.judged.at(-1)], [["odd", "b"], "b"]);
});

test("who has ended no longer counts when others are judged", () => {
  const world = new World();
  world.apply("ADD", pod("a"));
  world.workers.pods.set(uid("a"), { pod: pod("a"), step: "finished" });
  world.apply("ADD", pod("b"));
  assert.equal(world.judged.at(-1), "b");
});

test("undecided: the pod waits, newer versions too, until what it waits for is known", () => {
  const world = new World();
  world.verdict = () => ({ type: "undecided", waitsFor: "the Node" });
  world.apply("ADD", pod("a"));
  const newer = pod("a", { labels: { version: "2" } });
  world.apply("UPDATE", newer);
  assert.deepEqual(world.taken, []);
  assert.equal(world.block("a"), "NotDecidedYet: waiting for the Node");
  world.verdict = () => ({ type: "admitted" });
  world.registry.reconsider();
  assert.equal(world.worked("a"), newer);
});

test("undecided and removed: nothing is left to reconsider", () => {
  const world = new World();
  world.verdict = () => ({ type: "undecided", waitsFor: "the Node" });
  world.apply("ADD", pod("a"));
  world.apply("REMOVE", pod("a"));
  world.verdict = () => ({ type: "admitted" });
  world.registry.reconsider();
  assert.deepEqual([world.taken, world.forgotten], [[], ["a"]]);
});

test("a provisional list holds pods until their source stands by it", () => {
  const world = new World();
  world.assume([pod("held"), pod("free")], { held: "the API server" });
  world.registry.reconsider();
  assert.deepEqual(world.taken, ["free"]);
  assert.equal(world.block("held"), "NotDecidedYet: waiting for the API server");
  world.apply("ADD", pod("held"), pod("free"));
  assert.deepEqual(world.taken, ["free", "held"]);
});

for (const [name, verdict, words] of [
  ["refuses nobody", rejected, /the API server; for now, no cpu left/],
  [
    "stops nobody",
    { type: "admitted", preempts: { victims: [pod("victim")], resource: "cpu" } },
    /the API server; for now, others would have to stop to free cpu/,
  ],
] as const) {
  test(`a provisional list ${name}: the pod waits for its source`, () => {
    const world = new World();
    world.verdict = () => verdict;
    world.assume([pod("a")]);
    assert.deepEqual([world.taken, world.statuses, world.preemptions], [[], [], []]);
    assert.match(world.block("a") ?? "", words);
    world.verdict = () => ({ type: "admitted" });
    world.registry.reconsider();
    assert.deepEqual(world.taken, ["a"]);
  });
}

test("preemption: the pod starts, in its newest version, when those in its way have gone, who no longer count", () => {
  const world = new World();
  world.apply("ADD", pod("victim"));
  world.verdict = () => ({ type: "admitted", preempts: { victims: [pod("victim")], resource: "cpu" } });
  world.apply("ADD", pod("critical"));
  assert.deepEqual(world.taken, ["victim"]);
  assert.deepEqual(world.preemptions[0]?.preemption.victims.map(fullName), ["victim_default"]);
  world.verdict = () => ({ type: "admitted" });
  const newer = pod("critical", { labels: { version: "2" } });
  world.apply("UPDATE", newer);
  assert.equal(world.worked("critical"), undefined, "still waits for room");
  world.apply("ADD", pod("c"));
  assert.equal(world.judged.at(-1), "c beside critical");
  world.preemptions[0]?.then();
  assert.equal(world.worked("critical"), newer);
});

test("preemption: who is removed while waiting for room does not start, even when it comes again and waits anew", () => {
  const world = new World();
  world.verdict = () => ({ type: "admitted", preempts: { victims: [pod("victim")], resource: "cpu" } });
  world.apply("ADD", pod("critical"));
  world.apply("REMOVE", pod("critical"));
  world.preemptions[0]?.then();
  assert.deepEqual(world.taken, []);
  world.apply("ADD", pod("critical"));
  world.preemptions[0]?.then();
  assert.deepEqual(world.taken, [], "the room was made for the earlier wait");
  world.preemptions[1]?.then();
  assert.deepEqual(world.taken, ["critical"]);
});

test("preemption: who is to end needs no room", () => {
  const world = new World();
  world.verdict = () => ({ type: "admitted", preempts: { victims: [pod("victim")], resource: "cpu" } });
  world.apply("ADD", pod("critical"));
  world.apply("DELETE", pod("critical", deleting));
  assert.deepEqual(world.taken, ["critical"]);
});
