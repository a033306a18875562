import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EvictionWorld, type WorldPod } from "../../../../test/support/eviction-world.ts";
import { testContainer, testPod } from "../../../../test/support/pods.ts";
import { seededRandom } from "../../../../test/support/seeded-random.ts";
import { never } from "../../../ground/base/index.ts";
import type { EvictionSettings, EvictionThreshold } from "../../../ground/config/index.ts";
import { parseQuantity } from "../../../ground/model/index.ts";
import { foresee } from "../plan/forecast.ts";
import type { Reclaim } from "../plan/planner.ts";
import type { DiskLayout } from "../plan/signals.ts";
import { wantedAmount } from "../plan/threshold-amounts.ts";
import { type DiskUse, type Held, nothingHeld } from "../plan/usage.ts";

const settings = (...thresholds: EvictionThreshold[]): EvictionSettings => ({
  thresholds,
  maxPodGraceSeconds: 5,
  transitionMs: 300_000,
});
const threshold = (
  signal: EvictionThreshold["signal"],
  amount: number,
  more: Partial<EvictionThreshold> = {},
): EvictionThreshold => ({
  signal,
  amount: { quantity: parseQuantity(String(amount)) },
  format: "decimal",
  graceMs: 0,
  minReclaim: undefined,
  ...more,
});
const noDisk: DiskUse = { layers: nothingHeld, logs: nothingHeld, ownVolumes: nothingHeld, hostVolumes: nothingHeld };

function worldPod(name: string, more: Partial<WorldPod> & { priority?: number; request?: number } = {}): WorldPod {
  const { priority = 0, request = 0, ...rest } = more;
  const resources = { requests: { memory: String(request), "ephemeral-storage": String(request) } };
  return {
    pod: testPod({ priority, containers: [testContainer("main", { resources })] }, { name, uid: name }),
    memoryBytes: 0,
    tasks: 0,
    disk: noDisk,
    life: { step: "running" },
    exemption: undefined,
    isUnkillable: false,
    isUnmeasurable: false,
    ...rest,
  };
}

const hard = settings(threshold("memory.available", 1000));

test("a pod goes within a moment of memory getting short, and the condition stays five minutes", async () => {
  await using world = new EvictionWorld(hard);
  world.pods.push(worldPod("small", { memoryBytes: 100 }), worldPod("big", { memoryBytes: 5000 }));
  world.start();
  await world.clock.advance(20_000);
  assert.deepEqual([world.evicted, world.conditions], [[], []]);
  world.others.memory = 10_500;
  await world.clock.advance(250);
  assert.deepEqual(
    world.evicted.map(({ name }) => name),
    ["big"],
  );
  assert.deepEqual(world.events, ["EvictionThresholdMet Attempting to reclaim memory"]);
  assert.match(world.evicted[0]?.message ?? "", /^The node was low on resource: memory\. Threshold quantity: 1k, /);
  await world.clock.advance(299_000);
  assert.deepEqual(world.conditions, ["MemoryPressure"]);
  await world.clock.advance(5_000);
  assert.deepEqual(world.conditions, ["MemoryPressure", ""]);
  assert.equal(world.evicted.length, 1);
});

test("a node that runs short says so, also where nobody has to go, or may", async () => {
  const event = "EvictionThresholdMet Attempting to reclaim memory";
  await using ending = new EvictionWorld(hard);
  const life = { step: "stopping", killAt: ending.clock.monotonic() + 600_000, isAtOnce: false } as const;
  ending.pods.push(worldPod("ends anyway", { memoryBytes: 5000, life }));
  await using critical = new EvictionWorld(hard);
  critical.pods.push(worldPod("vital", { memoryBytes: 5000, exemption: "critical" }));
  for (const world of [ending, critical]) {
    world.others.memory = 10_500;
    world.start();
    await world.clock.advance(60_000);
    assert.deepEqual([world.evicted, world.events], [[], [event]]);
  }
});

test("no flapping: usage that swings about the threshold makes one condition and one event", async () => {
  await using world = new EvictionWorld(hard);
  world.start();
  for (let swing = 0; swing < 50; swing++) {
    world.others.memory = swing % 2 === 0 ? 15_500 : 15_000;
    await world.clock.advance(10_000);
  }
  assert.deepEqual(world.conditions, ["MemoryPressure"]);
});

test("a victim that can't be killed holds up the next one for seconds, not for half a minute", async () => {
  await using world = new EvictionWorld(hard);
  world.pods.push(worldPod("stuck", { memoryBytes: 9000, isUnkillable: true }), worldPod("next", { memoryBytes: 900 }));
  world.others.memory = 6_000;
  world.start();
  await world.clock.advance(10_000);
  assert.equal(world.evicted.length, 1);
  await world.clock.advance(2_500);
  assert.deepEqual(
    world.evicted.map(({ name }) => name),
    ["stuck", "next"],
  );
});

test("who went for something else, or freed enough, holds up nobody who fills the disk", async () => {
  await using world = new EvictionWorld(
    settings(threshold("memory.available", 1000), threshold("nodefs.available", 10_000)),
  );
  const filling = (bytes: number): DiskUse => ({ ...noDisk, ownVolumes: { bytes, inodes: 1 } });
  world.pods.push(
    worldPod("eater", { memoryBytes: 5000 }),
    worldPod("filler-1", { disk: filling(50_000) }),
    worldPod("filler-2", { disk: filling(20_000) }),
  );
  world.start();
  await world.clock.advance(1_000);
  const names = (): readonly string[] => world.evicted.map(({ name }) => name);
  world.others.memory = 11_000;
  await world.clock.advance(1_000);
  assert.deepEqual(names(), ["eater"]);
  await world.clock.advance(2_000);
  world.others.nodefs = { bytes: 25_000, inodes: 0 };
  await world.clock.advance(1_000);
  assert.deepEqual(names(), ["eater", "filler-1"]);
  await world.clock.advance(5_000);
  world.others.nodefs = { bytes: 75_000, inodes: 0 };
  await world.clock.advance(1_000);
  assert.deepEqual(names(), ["eater", "filler-1", "filler-2"]);
});

test("a disk with room for a moment, while its victim still writes, costs no second pod", async () => {
  await using world = new EvictionWorld(settings(threshold("nodefs.available", 10_000)));
  const filling = (bytes: number): DiskUse => ({ ...noDisk, ownVolumes: { bytes, inodes: 1 } });
  world.pods.push(worldPod("filler", { disk: filling(50_000) }), worldPod("bystander", { disk: filling(100) }));
  world.start();
  await world.clock.advance(1_000);
  const press = async (bytes: number, ms: number): Promise<void> => {
    world.others.nodefs = { bytes, inodes: 0 };
    await world.clock.advance(ms);
  };
  await press(45_000, 600);
  assert.deepEqual(
    world.evicted.map(({ name }) => name),
    ["filler"],
  );
  await press(0, 300);
  // Its files take longer to go than itself.
  await press(95_000, 10_000);
  await press(0, 60_000);
  assert.equal(world.evicted.length, 1);
});

test("a disk whose victim takes long to end, and what it had longer: nobody else goes for it", async () => {
  await using world = new EvictionWorld(settings(threshold("nodefs.available", 10_000)));
  const held = (bytes: number) => ({ ...noDisk, ownVolumes: { bytes, inodes: 1 } });
  const big = worldPod("big", { disk: held(20_000), isUnkillable: true });
  world.pods.push(worldPod("small", { disk: held(10) }), big);
  world.others.nodefs.bytes = 75_000;
  world.start();
  await world.clock.advance(20_000);
  // It is gone at last, and the runtime has yet to remove what it wrote.
  world.pods.splice(world.pods.indexOf(big), 1);
  world.others.nodefs.bytes = 95_000;
  await world.clock.advance(10_000);
  world.others.nodefs.bytes = 75_000;
  await world.clock.advance(60_000);
  assert.deepEqual(
    world.evicted.map(({ name }) => name),
    ["big"],
  );
});

test("a machine that takes long to end a pod takes as long for its files: nobody else goes meanwhile", async () => {
  await using world = new EvictionWorld(settings(threshold("nodefs.available", 10_000)));
  world.killTakesMs = 25_000;
  const held = (bytes: number): DiskUse => ({ ...noDisk, ownVolumes: { bytes, inodes: 1 } });
  world.pods.push(worldPod("big", { disk: held(20_000) }), worldPod("small", { disk: held(10) }));
  world.others.nodefs.bytes = 75_000;
  world.start();
  for (let tries = 0; tries < 100 && world.evicted.length === 0; tries++) await world.clock.advance(100);
  // Its files are still there when it is not.
  world.others.nodefs.bytes = 95_000;
  await world.clock.advance(26_000 + 23_000);
  assert.equal(world.pods.length, 1);
  world.others.nodefs.bytes = 75_000;
  await world.clock.advance(120_000);
  assert.deepEqual(
    world.evicted.map(({ name }) => name),
    ["big"],
  );
});

test("a disk that does not answer any more: nobody goes for what was seen before the last one went", async () => {
  const reclaimable = new Map([["images", { bytes: 1_000, inodes: 0 }]] as const);
  await using world = new EvictionWorld(settings(threshold("nodefs.available", 10_000)), { reclaimable });
  const filling = (bytes: number): DiskUse => ({ ...noDisk, ownVolumes: { bytes, inodes: 1 } });
  for (const bytes of [50_000, 20_000, 15_000]) world.pods.push(worldPod(`with-${bytes}`, { disk: filling(bytes) }));
  world.start();
  await world.clock.advance(1_000);
  world.others.nodefs.bytes = 10_000;
  await world.clock.advance(1_000);
  assert.equal(world.evicted.length, 1);
  world.others.nodefs.bytes = 60_000;
  world.hangDisks();
  world.others.nodefs.bytes = 10_000;
  await world.clock.advance(60_000);
  assert.deepEqual(
    world.evicted.map(({ name }) => name),
    ["with-50000"],
  );
  assert.equal(world.events.length, 2, "nothing is removed for it again either");
});

test("somebody who eats all there is gets no time: what was polite becomes sudden", async () => {
  await using world = new EvictionWorld(hard);
  const eater = worldPod("eater", { memoryBytes: 1000 });
  world.pods.push(eater);
  world.others.memory = 14_000;
  world.start();
  await world.clock.advance(1_000);
  // 1000 a second, with 1000 to be left.
  for (let step = 0; step < 20 && world.pods.length > 0; step++) {
    eater.memoryBytes += 100;
    await world.clock.advance(100);
  }
  assert.equal(world.pods.length, 0);
  assert.equal(world.evicted[0]?.grace, "at once");
});

test("other settings do not begin the grace of a soft threshold anew", async () => {
  const soft = () => settings(threshold("memory.available", 1000, { graceMs: 60_000 }));
  await using world = new EvictionWorld(soft());
  world.pods.push(worldPod("big", { memoryBytes: 5000 }));
  world.others.memory = 10_500;
  world.start();
  for (let change = 0; change < 3; change++) {
    await world.clock.advance(25_000);
    world.manager.configure(soft());
  }
  await world.clock.advance(1_000);
  assert.deepEqual(
    world.evicted.map(({ name }) => name),
    ["big"],
  );
});

test("nor does the word of the runtime which disks there are, when settings have changed before it", async () => {
  const soft = () => settings(threshold("memory.available", 1000, { graceMs: 60_000 }));
  await using world = new EvictionWorld(soft());
  world.areDisksKnown = false;
  world.pods.push(worldPod("big", { memoryBytes: 5000 }));
  world.others.memory = 10_500;
  world.start();
  await world.clock.advance(25_000);
  world.manager.configure(soft());
  await world.clock.advance(25_000);
  world.areDisksKnown = true;
  await world.clock.advance(11_000);
  assert.equal(world.evicted.length, 1);
});

test("a full disk: a pod whose memory can't be read, but whose disk can, does not go before others", async () => {
  await using world = new EvictionWorld(settings(threshold("nodefs.available", 1000)));
  const held = (bytes: number) => ({ ...noDisk, ownVolumes: { bytes, inodes: 1 } });
  world.pods.push(worldPod("small", { disk: held(10), isUnmeasurable: true }), worldPod("big", { disk: held(5000) }));
  world.others.nodefs.bytes = 95_000;
  world.start();
  await world.clock.advance(5_000);
  assert.deepEqual(
    world.evicted.map(({ name }) => name),
    ["big"],
  );
});

test("far from every threshold, hardly anybody looks", async () => {
  await using world = new EvictionWorld(settings(threshold("pid.available", 100)));
  world.capacity.tasks = 1_000_000;
  world.start();
  await world.clock.advance(600_000);
  assert.ok(world.looks <= 61, `${world.looks} looks in ten minutes`);
});

test("what nobody needs goes before any pod, and may be enough", async () => {
  const reclaimable = new Map([["images", { bytes: 60_000, inodes: 0 }]] as const);
  await using world = new EvictionWorld(settings(threshold("nodefs.available", 50_000)), { reclaimable });
  world.pods.push(worldPod("a", { disk: { ...noDisk, ownVolumes: { bytes: 100, inodes: 1 } } }));
  world.start();
  await world.clock.advance(60_000);
  assert.deepEqual([world.evicted, world.reclaimable.size, world.conditions], [[], 0, ["DiskPressure"]]);
});

const layouts: readonly DiskLayout[] = ["one disk for all", "images apart", "containers apart"];

interface Made {
  readonly settings: EvictionSettings;
  readonly layout: DiskLayout;
  readonly pods: readonly WorldPod[];
  readonly reclaimable: ReadonlyMap<Reclaim, Held>;
}

/** Random numbers come from a seed, so that fast-check can shrink them and a failure can be repeated. */
function make(random: () => number, unkillable = 0): Made {
  const upTo = (most: number): number => Math.floor(random() * most);
  const held = (most: number) => ({ bytes: upTo(most), inodes: upTo(most / 50) });
  const signals = [
    "memory.available",
    "pid.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
  ] as const;
  const thresholds = signals.flatMap((signal) => {
    if (random() < 0.4) return [];
    const most =
      signal === "memory.available"
        ? 4_000
        : signal.endsWith("inodesFree") || signal === "pid.available"
          ? 2_000
          : 30_000;
    const minReclaim = random() < 0.3 ? { quantity: parseQuantity(String(upTo(most / 4))) } : undefined;
    return [threshold(signal, 1 + upTo(most), { minReclaim, graceMs: random() < 0.3 ? 1 + upTo(60_000) : 0 })];
  });
  const pods = Array.from({ length: upTo(12) }, (_, index) =>
    worldPod(`pod-${index}`, {
      priority: [0, 0, 100, -5][upTo(4)] ?? 0,
      request: upTo(2_000),
      memoryBytes: upTo(3_000),
      tasks: upTo(1_500),
      disk: { layers: held(8_000), logs: held(2_000), ownVolumes: held(8_000), hostVolumes: held(1_000) },
      exemption: random() < 0.25 ? "critical" : undefined,
      isUnmeasurable: random() < 0.1,
      isUnkillable: random() < unkillable,
    }),
  );
  const layout = layouts[upTo(layouts.length)] ?? "one disk for all";
  const reclaimable = new Map([["images", held(20_000)] as const, ["containers", held(5_000)] as const]);
  return { settings: settings(...thresholds), layout, pods, reclaimable };
}

function worldOf({ settings: of, layout, pods, reclaimable }: Made): EvictionWorld {
  const world = new EvictionWorld(of, { layout, reclaimable });
  world.pods.push(...pods);
  return world;
}

test("whatever presses, the node ends with enough or with nothing left that may go, and takes nobody needlessly", async () => {
  const swing = fc.record({
    memory: fc.integer({ min: 0, max: 16_000 }),
    tasks: fc.integer({ min: 0, max: 9_900 }),
    bytes: fc.integer({ min: 0, max: 90_000 }),
    inodes: fc.integer({ min: 0, max: 9_000 }),
    imageBytes: fc.integer({ min: 0, max: 90_000 }),
    imageInodes: fc.integer({ min: 0, max: 9_000 }),
    ms: fc.integer({ min: 10, max: 90_000 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.array(swing, { maxLength: 6 }), async (seed, swings) => {
      // Some hang for ever once they are to end, and some of these were to end already.
      const made = make(seededRandom(seed), 0.15);
      const [first] = made.pods;
      if (first?.isUnkillable) first.life = { step: "stopping", killAt: undefined, isAtOnce: false };
      await using world = worldOf(made);
      const critical = made.pods.filter(({ exemption }) => exemption !== undefined).map(({ pod }) => pod.metadata.name);
      world.start();
      for (const { memory, tasks, bytes, inodes, imageBytes, imageInodes, ms } of swings) {
        const imagefs = { bytes: imageBytes, inodes: imageInodes };
        Object.assign(world.others, { memory, tasks, nodefs: { bytes, inodes }, imagefs });
        await world.clock.advance(ms);
      }
      await world.clock.advance(15 * 60_000);
      const names = world.evicted.map(({ name }) => name);
      assert.deepEqual(world.needless, [], "victims that nobody needed");
      assert.equal(new Set(names).size, names.length, "nobody goes twice");
      assert.ok(!names.some((name) => critical.includes(name)), "nobody goes who must stay");
      const mayGo = world.pods.filter(({ exemption, life }) => exemption === undefined && life.step === "running");
      const seen = world.observations();
      const short = made.settings.thresholds.filter((each) => {
        const observed = seen.get(each.signal);
        return observed !== undefined && observed.available < wantedAmount(each, observed);
      });
      assert.ok(mayGo.length === 0 || short.length === 0, `short of ${short.map(({ signal }) => signal)}`);
    }),
    { numRuns: 40, seed: 20_261_117 },
  );
});

test("the dry run, too, counts on no critical pod that takes an hour to end", async () => {
  await using world = new EvictionWorld(hard);
  const life = { step: "stopping", killAt: world.clock.monotonic() + 3_600_000, isAtOnce: false } as const;
  world.pods.push(worldPod("vital", { memoryBytes: 5000, life, exemption: "critical" }));
  for (const name of ["a", "b", "c"]) world.pods.push(worldPod(name, { memoryBytes: 300 }));
  world.others.memory = 10_284;
  const { evictions } = foresee(await world.manager.situation(new Map(), never), new Map());
  const foreseen = evictions.map(({ victim }) => victim.pod.metadata.name);
  world.start();
  await world.clock.advance(60_000);
  assert.deepEqual(
    foreseen,
    world.evicted.map(({ name }) => name),
  );
  assert.equal(foreseen.length, 3);
});

test("what is pretended is foreseen alike, however lately the node was looked at", async () => {
  const foreseenIn = async (world: EvictionWorld): Promise<readonly string[]> => {
    const { evictions } = foresee(
      await world.manager.situation(new Map([["memory.available", 500]]), never),
      new Map(),
    );
    return evictions.map(({ victim, grace }) => `${victim.pod.metadata.name} ${grace}`);
  };
  const calm = (): EvictionWorld => {
    const world = new EvictionWorld(hard);
    for (const name of ["a", "b"]) world.pods.push(worldPod(name, { memoryBytes: 300 }));
    return world;
  };
  await using fresh = calm();
  const expected = await foreseenIn(fresh);
  assert.equal(expected.length, 2);
  await using world = calm();
  world.start();
  for (let asked = 0; asked < 60; asked++) {
    await world.clock.advance(250);
    assert.deepEqual(await foreseenIn(world), expected);
  }
});

test("in 100 situations, the dry run names the same victims in the same order as the real one takes", async () => {
  let victims = 0;
  for (let seed = 1; seed <= 100; seed++) {
    const random = seededRandom(seed);
    const drawn = make(random);
    // What nobody can measure nobody can foresee.
    const made = { ...drawn, pods: drawn.pods.map((pod) => ({ ...pod, isUnmeasurable: false })) };
    const others = {
      memory: random() * 16_000,
      tasks: random() * 9_000,
      nodefs: { bytes: random() * 90_000, inodes: random() * 9_000 },
      imagefs: { bytes: random() * 90_000, inodes: random() * 9_000 },
    };
    const press = (world: EvictionWorld): EvictionWorld => {
      Object.assign(world.others, others);
      return world;
    };
    await using dry = press(worldOf({ ...made, pods: structuredClone(made.pods) }));
    const start = await dry.manager.situation(new Map(), never);
    const foreseen = foresee(start, new Map(dry.reclaimable));
    assert.deepEqual(dry.evicted, [], "a dry run does nothing");
    await using real = press(worldOf(made));
    real.start();
    await real.clock.advance(5 * 60_000);
    const took = real.evicted.map(({ name, grace }) => `${name} ${grace}`);
    assert.deepEqual(
      foreseen.evictions.map(({ victim, grace }) => `${victim.pod.metadata.name} ${grace}`),
      took,
      `seed ${seed}`,
    );
    victims += took.length;
    const isShort = made.settings.thresholds.some((each) => {
      const observed = real.observations().get(each.signal);
      return observed !== undefined && observed.available < wantedAmount(each, observed);
    });
    if (foreseen.outcome === "enough") assert.equal(isShort, false, `seed ${seed}`);
  }
  assert.ok(victims > 100, `only ${victims} victims in all`);
});
