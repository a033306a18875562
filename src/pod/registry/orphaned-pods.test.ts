// Pods that run and that no source names.
import assert from "node:assert/strict";
import { test } from "node:test";
import { testObserved, testSandbox } from "../../../test/support/pods.ts";
import { never, pod, rejected, uid, World } from "../../../test/support/registry-world.ts";
import type { ObservedPod } from "../../ground/model/index.ts";

test("a change in the runtime goes to the worker of the pod; without one the pod is unclaimed", () => {
  const world = new World();
  world.apply("ADD", pod("a"));
  world.registry.runtimeChanged(uid("a"));
  world.registry.runtimeChanged(uid("stranger"), "stranger_default");
  world.registry.runtimeChanged(uid("stranger"));
  assert.deepEqual(world.workers.looked, ["a"]);
  assert.deepEqual(world.orphans.unclaimed(), ["stranger"]);
  assert.equal(world.wanted.isUnclaimed("stranger_default"), true, "a hint without a name does not take the name");
});

const observed = (name: string, graces: readonly number[]): ObservedPod => ({
  uid: uid(name),
  name,
  namespace: "default",
  sandboxes: [testSandbox()],
  containers: graces.map((terminationGraceSeconds, index) => {
    const container = testObserved(`c${index}`);
    return { ...container, annotations: { ...container.annotations, terminationGraceSeconds } };
  }),
  ips: [],
  observedAt: 0,
});

for (const [name, graces, wanted] of [
  ["the longest grace its containers were made with", [5, 40, 10], 40],
  ["a second where they do not say", [], 1],
] as const) {
  test(`an orphan is stopped with ${name}`, async () => {
    const world = new World();
    world.inspect = () => observed("orphan", graces);
    world.registry.runtimeChanged(uid("orphan"), "orphan_default");
    await world.orphans.stopIfOrphaned(uid("orphan"), never);
    assert.deepEqual(world.workers.orphans, [`orphan_default ${wanted}`]);
    assert.deepEqual(world.orphans.unclaimed(), []);
  });
}

test("no orphan: wanted ones, even those that wait, and those that a source may still name", async () => {
  const world = new World();
  world.inspect = (of) => observed(of, [1]);
  for (const name of ["waits", "unnamed"]) world.registry.runtimeChanged(uid(name), `${name}_default`);
  world.assume([pod("waits")], { waits: "the API server" });
  world.mayStop = false;
  for (const of of world.orphans.unclaimed()) await world.orphans.stopIfOrphaned(of, never);
  assert.deepEqual(world.workers.orphans, []);
  assert.deepEqual(world.orphans.unclaimed(), ["waits", "unnamed"]);
  world.mayStop = true;
  for (const of of world.orphans.unclaimed()) await world.orphans.stopIfOrphaned(of, never);
  assert.deepEqual(world.workers.orphans, ["unnamed_default 1"]);
});

test("no orphan: one that is named while it is looked at", async () => {
  const world = new World();
  world.registry.runtimeChanged(uid("a"), "a_default");
  world.inspect = (of) => {
    world.apply("ADD", pod("a"));
    return observed(of, [1]);
  };
  await world.orphans.stopIfOrphaned(uid("a"), never);
  assert.deepEqual([world.workers.orphans, world.taken], [[], ["a"]]);
});

test("an orphan that can't be inspected is tried again later; one that has gone by then is none", async () => {
  const world = new World();
  world.registry.runtimeChanged(uid("orphan"), "orphan_default");
  await world.orphans.stopIfOrphaned(uid("orphan"), never);
  assert.deepEqual(world.orphans.unclaimed(), ["orphan"]);
  world.inspect = () => ({ ...observed("orphan", []), sandboxes: [] });
  await world.orphans.stopIfOrphaned(uid("orphan"), never);
  assert.deepEqual([world.orphans.unclaimed(), world.workers.orphans], [[], []]);
});

test("a refused pod that runs after all is an orphan", async () => {
  const world = new World();
  world.verdict = () => rejected;
  world.apply("ADD", pod("a"));
  world.inspect = (of) => observed(of, [2]);
  world.registry.runtimeChanged(uid("a"), "a_default");
  await world.orphans.stopIfOrphaned(uid("a"), never);
  assert.deepEqual(world.workers.orphans, ["a_default 2"]);
});
