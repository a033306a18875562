import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { gpu, nic, wants } from "../../../test/support/device-tests.ts";
import { allocated, DeviceWorld, settleWorld } from "../../../test/support/device-world.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { processorTime } from "../../../test/support/processor-time.ts";
import { PluginError } from "../../connections/plugins/rpc.ts";
import { type IdentifiedPod, type PodUid, uidOf } from "../../ground/model/index.ts";

let world: DeviceWorld;
beforeEach(() => {
  world = new DeviceWorld(new FakeClock());
});
afterEach(() => world.stop());

const idsOf = (pod: IdentifiedPod, container = "c0", resource = gpu) =>
  world.manager.state.get(uidOf(pod))?.get(container)?.get(resource)?.ids;

describe("a pod that asks for devices", () => {
  test("waits for its plugin's answer, has its devices, and they are on disk before it runs", async () => {
    const plugin = world.offer(gpu, ["b", "a", "c"]);
    const pod = wants("p", { [gpu]: 2 });
    world.add(pod);
    assert.match(world.waiting.get(uidOf(pod)) ?? "", /device plugins to say how its devices are used/);
    await settleWorld(world, false);
    assert.ok(!world.running.has(uidOf(pod)), "the answer is not saved yet");
    await settleWorld(world);
    assert.ok(world.running.has(uidOf(pod)));
    assert.deepEqual(plugin.asked, ["allocate a,b"]);
    assert.match(world.file.text ?? "", /"PodUID":"p"/);
    const { env } = await world.manager.grantsFor(pod, pod.spec.containers[0] ?? testContainer("x"), never());
    assert.deepEqual([...env], [["IDS", "a,b"]]);
  });

  test("nobody else waits for a plugin that hangs", async () => {
    const plugin = world.offer(gpu, ["a"]);
    world.offer(nic, ["n"]);
    plugin.answer = () => new Promise(() => {});
    const [hung, other, plain] = [wants("hung", { [gpu]: 1 }), wants("other", { [nic]: 1 }), wants("plain", {})];
    for (const pod of [hung, other, plain]) world.add(pod);
    assert.ok(world.running.has(uidOf(plain)), "at once");
    await settleWorld(world);
    assert.deepEqual([...world.running.keys()].sort(), ["other", "plain"]);
    assert.ok(world.waiting.has(uidOf(hung)));
  });

  test("is refused with the plugin's words, and its devices are others' again", async () => {
    const plugin = world.offer(gpu, ["a"]);
    plugin.answer = () => Promise.reject(new PluginError("Allocate", "Internal", "no power"));
    const pod = wants("p", { [gpu]: 1 });
    world.add(pod);
    await settleWorld(world);
    const text = "rpc error: code = Internal desc = no power";
    assert.equal(world.rejected.get(uidOf(pod)), `Allocate failed due to ${text}, which is unexpected`);
    plugin.answer = async () => allocated({});
    world.add(wants("q", { [gpu]: 1 }));
    await settleWorld(world);
    assert.ok(world.running.has("q" as PodUid));
  });

  test("that a plugin leaves while it is asked waits for its return", async () => {
    const plugin = world.offer(gpu, ["a"]);
    plugin.answer = () => {
      world.withdraw(gpu);
      return Promise.reject(new PluginError("Allocate", "Unavailable", "connection closed"));
    };
    const pod = wants("p", { [gpu]: 1 });
    world.add(pod);
    await settleWorld(world);
    assert.match(world.waiting.get(uidOf(pod)) ?? "", /device plugin of vendor.com\/gpu to register/);
    world.offer(gpu, ["a"]);
    await settleWorld(world);
    assert.ok(world.running.has(uidOf(pod)));
  });

  test("whose call breaks before it is known that the plugin has left waits too, and is refused after ten of them", async () => {
    const plugin = world.offer(gpu, ["a"]);
    plugin.answer = () => Promise.reject(new PluginError("Allocate", "Unavailable", "connection dropped"));
    world.add(wants("p", { [gpu]: 1 }));
    await settleWorld(world);
    assert.ok(world.waiting.has("p" as PodUid));
    for (let second = 0; second < 12; second++) {
      await world.clock.advance(1_000);
      await settleWorld(world);
    }
    assert.match(world.rejected.get("p" as PodUid) ?? "", /connection dropped/);
    assert.equal(plugin.asked.length, 11);
  });

  test("is refused where too few are left or none is healthy", async () => {
    world.offer(gpu, ["a", "b"], ["b"]);
    world.offer(nic, ["n"], ["n"]);
    world.add(wants("p", { [gpu]: 2 }));
    world.add(wants("q", { [nic]: 1 }));
    const amounts = "requested number of devices unavailable for vendor.com/gpu. Requested: 2, Available: 1";
    assert.equal(world.rejected.get("p" as PodUid), `Allocate failed due to ${amounts}, which is unexpected`);
    const unhealthy = "no healthy devices present; cannot allocate unhealthy devices vendor.com/nic";
    assert.equal(world.rejected.get("q" as PodUid), `Allocate failed due to ${unhealthy}, which is unexpected`);
  });

  test("of a resource that nobody has ever offered is none of ours, nor is none of one", async () => {
    world.offer(gpu, ["a"]);
    world.add(wants("p", { "other.com/thing": 3 }));
    world.add(wants("q", { [gpu]: 0 }));
    assert.deepEqual([...world.running.keys()], ["p", "q"]);
    assert.equal(world.manager.state.size, 0);
  });

  test("has what its plugin prefers, and what it prefers wrongly is ignored", async () => {
    const plugin = world.offer(gpu, ["a", "b", "c"]);
    plugin.options = { preStartRequired: false, givesPreferences: true };
    plugin.prefers = async () => ["x", "c"];
    world.add(wants("p", { [gpu]: 1 }));
    await settleWorld(world);
    assert.deepEqual(idsOf(wants("p")), ["c"]);
    world.add(wants("q", { [gpu]: 2 }));
    await settleWorld(world);
    assert.deepEqual(idsOf(wants("q")), ["a", "b"]);
    assert.deepEqual(plugin.asked, ["preferred a,b,c of 1", "allocate c", "preferred a,b of 2", "allocate a,b"]);
  });

  test("is refused by a plugin that can't say what it prefers", async () => {
    const plugin = world.offer(gpu, ["a", "b"]);
    plugin.options = { preStartRequired: false, givesPreferences: true };
    plugin.prefers = () => Promise.reject(new PluginError("GetPreferredAllocation", "Unknown", "rubbish"));
    world.add(wants("p", { [gpu]: 1 }));
    await settleWorld(world);
    assert.match(world.rejected.get("p" as PodUid) ?? "", /GetPreferredAllocation rpc failed with err: rpc error/);
  });
});

test("init containers leave their devices to those after them, sidecars do not", async () => {
  world.offer(gpu, ["a", "b", "c"]);
  const limits = (count: number) => ({ resources: { limits: { [gpu]: String(count) } } });
  const pod = testPod(
    {
      initContainers: [
        testContainer("init", limits(2)),
        testContainer("side", { ...limits(1), restartPolicy: "Always" }),
      ],
      containers: [testContainer("main", limits(2))],
    },
    { uid: "p" },
  );
  world.add(pod);
  await settleWorld(world);
  assert.ok(world.running.has("p" as PodUid));
  assert.deepEqual([idsOf(pod, "init"), idsOf(pod, "side"), idsOf(pod, "main")], [["a", "b"], ["a"], ["b", "c"]]);
});

describe("devices that lie on NUMA nodes", () => {
  const aligned = (policy: "restricted" | "single-numa-node", scope: "container" | "pod" = "container") => {
    world.settings = { policy, scope, prefersClosest: false };
    world.offer(gpu, ["a@0", "b@1", "c@1"]);
    world.offer(nic, ["m@0", "n@1"]);
  };

  test("come from one node, with those of other resources", async () => {
    aligned("single-numa-node");
    world.add(wants("p", { [gpu]: 2, [nic]: 1 }));
    await settleWorld(world);
    assert.deepEqual([idsOf(wants("p")), idsOf(wants("p"), "c0", nic)], [["b", "c"], ["n"]]);
    world.add(wants("q", { [gpu]: 1, [nic]: 1 }));
    await settleWorld(world);
    assert.deepEqual([idsOf(wants("q")), idsOf(wants("q"), "c0", nic)], [["a"], ["m"]]);
  });

  test("are refused where they would come from several", () => {
    aligned("single-numa-node");
    world.add(wants("p", { [gpu]: 3 }));
    assert.equal(world.rejected.get("p" as PodUid), "Resources cannot be allocated with Topology locality");
    assert.equal(world.manager.state.size, 0);
  });

  test("are chosen for the pod as a whole, and kept while their plugin is asked", async () => {
    aligned("restricted", "pod");
    world.add(wants("p", { [gpu]: 1 }, { [gpu]: 1 }));
    await settleWorld(world);
    assert.ok(world.running.has("p" as PodUid));
    assert.deepEqual([idsOf(wants("p")), idsOf(wants("p"), "c1")], [["b"], ["c"]]);
  });

  test("of a plugin that is away are waited for, not refused", () => {
    aligned("single-numa-node");
    world.withdraw(gpu);
    world.add(wants("p", { [gpu]: 1 }));
    assert.match(world.waiting.get("p" as PodUid) ?? "", /to register/);
  });
});

describe("a plugin that is not there", () => {
  test("after a restart is awaited, pods that come wait and say so, and are refused when it does not come", async () => {
    world.offer(gpu, ["a"]);
    await settleWorld(world);
    await world.restart(true);
    const pod = wants("p", { [gpu]: 1 });
    world.add(pod);
    const { clock } = world;
    assert.match(world.waiting.get("p" as PodUid) ?? "", /the device plugin of vendor.com\/gpu to register, for 5 min/);
    assert.deepEqual([...world.manager.amounts().capacity], [[gpu, 0]]);
    await clock.advance(4 * 60_000);
    assert.ok(world.waiting.has("p" as PodUid));
    await clock.advance(61_000);
    const refusal = "Allocate failed due to cannot allocate unregistered device vendor.com/gpu, which is unexpected";
    assert.equal(world.rejected.get("p" as PodUid), refusal);
    assert.deepEqual(world.manager.amounts(), { capacity: new Map(), allocatable: new Map(), removed: [gpu] });
    assert.equal(clock.pendingTimers, 0);
  });

  test("takes nothing from a pod that runs: it keeps its devices, and they are counted", async () => {
    world.offer(gpu, ["a", "b"]);
    world.add(wants("p", { [gpu]: 1 }));
    await settleWorld(world);
    await world.restart(false);
    assert.ok(world.running.has("p" as PodUid));
    assert.deepEqual(idsOf(wants("p")), ["a"]);
    assert.equal(world.manager.admissibleAmounts().allocatable.get(gpu), 1);
    assert.equal(world.manager.amounts().allocatable.get(gpu), 0);
    world.add(wants("q", { [gpu]: 1 }));
    world.offer(gpu, ["a", "b"]);
    await settleWorld(world);
    assert.deepEqual(idsOf(wants("q")), ["b"]);
  });

  test("makes a container that starts after a restart wait, for a time, and not one after a crash of the plugin", async () => {
    world.offer(gpu, ["a"]);
    const pod = wants("p", { [gpu]: 1 });
    const [container = testContainer("x")] = pod.spec.containers;
    world.add(pod);
    await settleWorld(world);
    world.withdraw(gpu);
    assert.equal((await world.manager.grantsFor(pod, container, never())).env.get("IDS"), "a");
    await settleWorld(world);
    await world.restart(true);
    const waiting = /waiting for the device plugin of vendor.com\/gpu to register/;
    await assert.rejects(world.manager.grantsFor(pod, container, never()), waiting);
    assert.deepEqual(world.startable, []);
    await world.clock.advance(5 * 60_000 + 1);
    assert.deepEqual(world.startable, ["p"], "it is given up, and the container tried again");
    assert.equal((await world.manager.grantsFor(pod, container, never())).env.get("IDS"), "a");
  });

  test("wakes the containers that wait for it when it comes, once, and nobody else's", async () => {
    world.offer(gpu, ["a", "b"]);
    const pods = [wants("p", { [gpu]: 1 }), wants("q", { [gpu]: 1 })];
    for (const pod of pods) world.add(pod);
    await settleWorld(world);
    await world.restart(true);
    const [pod = wants("x")] = pods;
    const container = pod.spec.containers[0] ?? testContainer("x");
    for (let tries = 0; tries < 3; tries++) {
      await assert.rejects(world.manager.grantsFor(pod, container, never()), /waiting for the device plugin/);
    }
    world.offer(nic, ["n"]);
    assert.deepEqual(world.startable, []);
    world.offer(gpu, ["a", "b"]);
    assert.deepEqual(world.startable, ["p"]);
    assert.equal((await world.manager.grantsFor(pod, container, never())).env.get("IDS"), "a");
    world.offer(gpu, ["a"]);
    assert.deepEqual(world.startable, ["p"]);
  });

  test("is what the Node shows of it: all and the healthy ones, all and none, and nothing when its time is over", async () => {
    const shown = (): unknown => {
      const { capacity, allocatable, removed } = world.manager.amounts();
      return [capacity.get(gpu), allocatable.get(gpu), removed];
    };
    world.offer(gpu, ["a", "b", "c", "d"], ["d"]);
    assert.deepEqual(shown(), [4, 3, []]);
    world.withdraw(gpu);
    assert.deepEqual(shown(), [4, 0, []]);
    await world.clock.advance(299_000);
    assert.deepEqual(shown(), [4, 0, []]);
    await world.clock.advance(2_000);
    assert.deepEqual(shown(), [undefined, undefined, [gpu]]);
  });

  test("that left and came within its time loses nothing of its capacity", async () => {
    world.offer(gpu, ["a", "b"]);
    world.withdraw(gpu);
    assert.deepEqual(world.manager.amounts().capacity, new Map([[gpu, 2]]));
    assert.deepEqual(world.manager.amounts().allocatable, new Map([[gpu, 0]]));
    await world.clock.advance(299_000);
    world.offer(gpu, ["a", "b"]);
    await world.clock.advance(10_000);
    assert.deepEqual(world.manager.amounts().allocatable, new Map([[gpu, 2]]));
  });
});

test("before each start the plugin is told, where it wants to be; a failure keeps the container from starting", async () => {
  const plugin = world.offer(gpu, ["a"]);
  plugin.options = { preStartRequired: true, givesPreferences: false };
  world.manager.registered(gpu);
  const pod = wants("p", { [gpu]: 1 });
  const [container = testContainer("x")] = pod.spec.containers;
  world.add(pod);
  await settleWorld(world);
  await world.manager.grantsFor(pod, container, never());
  assert.deepEqual(plugin.asked, ["allocate a", "preStart a"]);
  plugin.preStarted = () => Promise.reject(new Error("cold"));
  const failed = /device plugin PreStartContainer rpc failed with err: cold/;
  await assert.rejects(world.manager.grantsFor(pod, container, never()), failed);
  world.withdraw(gpu);
  await assert.rejects(world.manager.grantsFor(pod, container, never()), /the plugin has left/);
});

test("two plugins that want different things: the first one's holds", async () => {
  world.offer(gpu, ["a"]).answer = async () => allocated({ SHARED: "gpu", GPU: "1" });
  world.offer(nic, ["n"]).answer = async () => allocated({ SHARED: "nic", NIC: "1" });
  const pod = wants("p", { [nic]: 1, [gpu]: 1 });
  world.add(pod);
  await settleWorld(world);
  const { env } = await world.manager.grantsFor(pod, pod.spec.containers[0] ?? testContainer("x"), never());
  assert.deepEqual(Object.fromEntries(env), { SHARED: "gpu", GPU: "1", NIC: "1" });
});

test("how devices are is told of pods that have them, when it changes", async () => {
  world.offer(gpu, ["a", "b"]);
  world.add(wants("p", { [gpu]: 1 }));
  await settleWorld(world);
  world.health.length = 0;
  world.offer(gpu, ["a", "b"], ["b"]);
  assert.deepEqual(world.health, []);
  world.offer(gpu, ["a", "b"], ["a"]);
  assert.deepEqual(world.health, ["p"]);
  const shown = world.manager.healthOf("p" as PodUid, "c0");
  assert.deepEqual(shown, [{ name: gpu, resources: [{ resourceID: "a", health: "Unhealthy" }] }]);
  world.offer(gpu, ["b"]);
  assert.equal(world.manager.healthOf("p" as PodUid, "c0")[0]?.resources?.[0]?.health, "Unknown");
});

for (const [what, text] of [
  ["of nonsense", "x"],
  ["of nothing", ""],
  ["of another kind", "[]"],
  ["that was cut off", undefined],
] as const) {
  test(`a checkpoint ${what} is nobody's loss but its own: who runs goes on, and plugins register as ever`, async () => {
    world.offer(gpu, ["a", "b"]);
    world.add(wants("p", { [gpu]: 1 }));
    await settleWorld(world);
    world.file.text = text ?? world.file.text?.slice(0, -20);
    const spoilt = world.file.text;
    await world.restart(false);
    assert.ok(world.running.has("p" as PodUid));
    assert.deepEqual(world.setAside, [spoilt]);
    assert.equal(world.manager.state.size, 0);
    assert.deepEqual(world.manager.amounts(), { capacity: new Map(), allocatable: new Map(), removed: [] });
    world.offer(gpu, ["a", "b"]);
    assert.deepEqual(world.manager.amounts().allocatable, new Map([[gpu, 2]]));
    await settleWorld(world);
    assert.match(world.file.text ?? "", /"RegisteredDevices":\{"vendor.com\/gpu":\["a","b"\]\}/, "and is whole again");
  });
}

test("a disk that is full makes pods wait, and refuses none", async () => {
  world.offer(gpu, ["a"]);
  await settleWorld(world);
  world.file.failure = new Error("ENOSPC");
  world.add(wants("p", { [gpu]: 1 }));
  await settleWorld(world);
  assert.ok(world.waiting.has("p" as PodUid));
  world.file.failure = undefined;
  await world.clock.advance(5_000);
  await settleWorld(world);
  assert.ok(world.running.has("p" as PodUid));
});

test("as many devices as a plugin may list: a pod that wants nearly all of them costs not much more than one that wants one", async () => {
  world.offer(
    gpu,
    Array.from({ length: 100_000 }, (_, index) => `device-${index}@${index % 2}`),
  );
  await settleWorld(world);
  const took = (count: number): Promise<number> => processorTime(() => world.add(wants(`p${count}`, { [gpu]: count })));
  const [one, many] = [await took(1), await took(90_000)];
  await settleWorld(world);
  assert.equal(world.running.size, 2);
  assert.ok(many < 20 * one, `${many} us for 90,000, ${one} us for one`);
});

/** `NODELET_SEQUENCES=10000 npm test -- admission-devices` is the proof; few are enough to notice a mistake. */

function never(): AbortSignal {
  return new AbortController().signal;
}
