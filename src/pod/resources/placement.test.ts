import assert from "node:assert/strict";
import process from "node:process";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { noCpuOptions } from "../../../test/support/cpu-manager.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { machineA, machineC, madeUpTopology } from "../../../test/support/made-up-topology.ts";
import { sizedPod } from "../../../test/support/pinned-pods.ts";
import { testPod } from "../../../test/support/pods.ts";
import type { MachineTopology } from "../../connections/host/index.ts";
import { CpuSet, silentLogger } from "../../ground/base/index.ts";
import { type IdentifiedPod, type PodUid, parseQuantity, uidOf } from "../../ground/model/index.ts";
import type { CpuOptions } from "./cpu/cpu-settings.ts";
import type { LastingFiles } from "./following-file.ts";
import { Placement } from "./placement.ts";
import type { PlacementSettings } from "./placement-settings.ts";
import { placementView } from "./placement-view.ts";
import type { RunningContainers } from "./running-containers.ts";
import { AllocationError, type HintProvider, noOpinion } from "./topology/hints.ts";

/** A disk whose writes take time: whoever is killed meanwhile finds the old text or the new one. */
class SlowDisk {
  readonly texts = new Map<string, string>();
  readonly #pending = new Map<string, { readonly text: string; readonly done: () => void }>();
  #owner = 0;

  /** For an agent that starts; those before it write no more, not even what they were about to. */
  forNewAgent(): LastingFiles {
    const owner = ++this.#owner;
    return {
      read: async (path) => this.texts.get(path),
      save: (path, text) =>
        new Promise((done) => {
          if (owner === this.#owner) this.#pending.set(path, { text, done });
        }),
    };
  }

  async finishWrites(): Promise<void> {
    // Writes that are about to begin begin in the next turn.
    for (await turn(); this.#pending.size > 0; await turn()) {
      for (const [path, { text, done }] of [...this.#pending]) {
        this.#pending.delete(path);
        this.texts.set(path, text);
        done();
      }
    }
  }

  /** The writer is gone; each write under way was in time, or was not. */
  kill(wasInTime: () => boolean): void {
    for (const [path, { text }] of this.#pending) if (wasInTime()) this.texts.set(path, text);
    this.#pending.clear();
  }
}

function settings(more: {
  readonly cpu?: { readonly options?: Partial<CpuOptions>; readonly reserved?: string; readonly count?: number };
  readonly memory?: boolean;
  readonly alignment?: Partial<PlacementSettings["alignment"]>;
}): PlacementSettings {
  const { cpu, memory, alignment } = more;
  return {
    cpu: cpu && {
      options: { ...noCpuOptions, ...cpu.options },
      reserved: CpuSet.parse(cpu.reserved ?? ""),
      reservedCount: cpu.count ?? CpuSet.parse(cpu.reserved ?? "0").size,
      liftsQuota: true,
    },
    memory: memory
      ? {
          reserved: [{ numaNode: 0, limits: { memory: "1Gi" } }],
          withheld: new Map([["memory", parseQuantity("1Gi")]]),
        }
      : undefined,
    alignment: { policy: "none", scope: "container", prefersClosest: false, mostNodes: 8, ...alignment },
  };
}

interface Lab {
  readonly placement: Placement;
  readonly disk: SlowDisk;
}

async function started(
  how: PlacementSettings,
  {
    machine = machineA as MachineTopology,
    disk = new SlowDisk(),
    holds = (_: PodUid): boolean => true,
    running = [] as readonly string[],
  } = {},
): Promise<Lab> {
  const found: RunningContainers = {
    areAny: running.length > 0,
    has: (uid, name) => running.includes(`${uid} ${name}`),
    ownerOf: () => undefined,
  };
  const placement = new Placement(how, {
    rootDir: "/root",
    files: disk.forNewAgent(),
    clock,
    log: silentLogger,
    readTopology: async () => machine,
    findRunning: async () => found,
    holds,
  });
  await placement.start();
  return { placement, disk };
}

/** Nobody moves it on: what waits for it waits. */
const clock = new FakeClock();

describe("at the start", () => {
  for (const [what, how, machine, message] of [
    [
      "no CPU reserved",
      settings({ cpu: { count: 0 } }),
      machineA,
      /requires systemreserved.cpu \+ kubereserved.cpu to be greater/,
    ],
    ["no CPU at all", settings({ cpu: { count: 1 } }), { nodes: [] }, "could not detect number of cpus"],
    [
      "more reserved than there are",
      settings({ cpu: { count: 17 } }),
      machineA,
      /unable to reserve the required amount of CPUs/,
    ],
    [
      "a reserved CPU that is offline",
      settings({ cpu: { reserved: "0,16" } }),
      machineA,
      "reserved-cpus: 0,16 is not a subset of online-cpus: 0-15",
    ],
    [
      "sockets without NUMA nodes",
      settings({ cpu: { reserved: "0", options: { bySocket: true } } }),
      { nodes: [{ ...machineA.nodes[0], cpus: machineA.nodes.flatMap(({ cpus }) => cpus) }] },
      "new static policy error: Align by socket is not compatible with hardware where number of sockets are more than number of NUMA",
    ],
    [
      "more NUMA nodes than allowed",
      settings({ alignment: { policy: "best-effort" } }),
      madeUpTopology({ sockets: 9, coresPerNode: 1 }),
      "unsupported on machines with more than 8 NUMA Nodes",
    ],
    [
      "more NUMA nodes than anybody can look at",
      settings({ alignment: { policy: "restricted", mostNodes: 64 } }),
      madeUpTopology({ sockets: 17, coresPerNode: 1 }),
      /cannot align more than 16 NUMA nodes/,
    ],
    [
      "distances that nobody knows",
      settings({ alignment: { policy: "restricted", prefersClosest: true } }),
      machineA,
      "cannot discover NUMA topology: error getting NUMA distances from cadvisor",
    ],
    [
      "reserved memory that does not add up",
      { ...settings({ memory: true }), memory: { reserved: [], withheld: new Map([["memory", 5n]]) } },
      machineA,
      /is not equal to the value/,
    ],
  ] as const) {
    test(what, () => assert.rejects(started(how, { machine: machine as MachineTopology }), { message }));
  }

  test("nine NUMA nodes: allowed where somebody says so, and where nothing is aligned", async () => {
    const machine = madeUpTopology({ sockets: 9, coresPerNode: 1 });
    await started(settings({ alignment: { policy: "best-effort", mostNodes: 9 } }), { machine });
    await started(settings({ cpu: { reserved: "0" } }), { machine: madeUpTopology({ sockets: 40, coresPerNode: 1 }) });
  });

  for (const [count, options, reserved] of [
    [2, {}, "0,8"],
    [3, {}, "0-1,8"],
    [2, { acrossCores: true }, "0-1"],
  ] as const) {
    test(`${count} CPUs are chosen to be reserved ${JSON.stringify(options)}`, async () => {
      const { placement } = await started(settings({ cpu: { count, options } }));
      assert.equal(String(placementView(placement).cpu?.reserved), reserved);
    });
  }

  test("without policies, files say so, and nobody is told where to run", async () => {
    const { placement, disk } = await started(settings({}));
    await disk.finishWrites();
    assert.equal(
      disk.texts.get("/root/cpu_manager_state"),
      '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
    );
    assert.equal(
      disk.texts.get("/root/memory_manager_state"),
      '{"policyName":"None","machineState":{},"checksum":4236770233}',
    );
    assert.deepEqual(placement.give(sizedPod("a", { main: "2" })).type, "given");
    assert.deepEqual(placement.of("a" as PodUid, "main"), { exclusiveCpus: false, cpus: "", memoryNodes: "" });
  });
});

test("a container is made only when what it was given is on disk", async () => {
  const { placement, disk } = await started(settings({ cpu: { reserved: "0,8" }, memory: true }));
  const pod = sizedPod("a", { main: "2 2Gi", side: "500m 1Gi" });
  placement.give(pod);
  let place: unknown;
  const asked = placement.placeOf(pod, "main").then((found) => {
    place = found;
  });
  await turn();
  assert.equal(place, undefined);
  await disk.finishWrites();
  await asked;
  assert.deepEqual(place, { exclusiveCpus: true, cpus: "1,9", memoryNodes: "0" });
  assert.match(disk.texts.get("/root/cpu_manager_state") ?? "", /"a":\{"main":"1,9"\}/);
  // Who has nothing alone need not wait for a disk that is full.
  assert.deepEqual(await placement.placeOf(testPod(), "main"), {
    exclusiveCpus: false,
    cpus: "0,2-8,10-15",
    memoryNodes: "",
  });
  assert.deepEqual(
    [placement.hasExclusiveCpus("a" as PodUid), placement.hasExclusiveCpus("b" as PodUid)],
    [true, false],
  );
});

test("a pod that runs is never refused: it keeps what it has, and shares where nothing is left", async () => {
  const how = settings({
    cpu: { reserved: "0,8", options: { wholeCoresOnly: true } },
    alignment: { policy: "single-numa-node" },
  });
  const { placement, disk } = await started(how);
  const pods = [sizedPod("a", { main: "8" }), sizedPod("b", { main: "6" })];
  for (const pod of pods) assert.equal(placement.give(pod).type, "given");
  await disk.finishWrites();
  const again = await started(how, { disk });
  for (const pod of pods) again.placement.takeOver(pod);
  assert.equal(again.placement.of("a" as PodUid, "main").cpus, "4-7,12-15");
  assert.equal(again.placement.of("b" as PodUid, "main").cpus, "1-3,9-11");
  // The file was lost: who comes first has them.
  const lost = await started(how);
  for (const pod of [...pods, sizedPod("c", { main: "8" })]) lost.placement.takeOver(pod);
  assert.equal(lost.placement.of("c" as PodUid, "main").cpus, "0,8");
  assert.equal(lost.placement.of("c" as PodUid, "main").exclusiveCpus, false);
});

test("what is taken back is free at once", async () => {
  const { placement } = await started(settings({ cpu: { reserved: "0,8" }, memory: true }));
  const giving = placement.give(sizedPod("a", { main: "14 4Gi" }));
  assert.equal(placement.give(sizedPod("b", { main: "2" })).type, "refused");
  if (giving.type === "given") giving.takeBack();
  assert.equal(placement.give(sizedPod("b", { main: "14 4Gi" })).type, "given");
});

/** NODELET_SEQUENCES=10000 is the proof; few are enough to notice a mistake. */
const sequences = Number(process.env["NODELET_SEQUENCES"] ?? 500);

describe("whatever comes, goes, restarts and is killed", () => {
  /** No CPU and no byte is given twice, and none is lost. */
  function checkSums({ placement }: Lab, machine: MachineTopology): void {
    const { cpu, nodes, containers } = placementView(placement);
    assert.ok(cpu !== undefined);
    const owners = new Map<number, string>();
    for (const { uid, cpus } of containers) {
      for (const one of cpus ?? []) {
        assert.ok((owners.get(one) ?? uid) === uid, `CPU ${one} is given to ${owners.get(one)} and to ${uid}`);
        owners.set(one, uid);
      }
    }
    const all = CpuSet.of(machine.nodes.flatMap(({ cpus }) => cpus.map(({ id }) => id)));
    assert.equal(String(cpu.exclusive), String(CpuSet.of(owners.keys())));
    assert.equal(cpu.exclusive.sizeOfCommon(cpu.reserved) + cpu.exclusive.sizeOfCommon(cpu.shared), 0);
    assert.equal(String(cpu.exclusive.with(cpu.shared).with(cpu.reserved)), String(all));
    const blocks = containers.flatMap(({ memory }) => memory);
    const reserved = nodes.reduce((sum, { memory }) => sum + (memory.get("memory")?.reserved ?? 0), 0);
    assert.equal(
      reserved,
      blocks.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    for (const { id, memory, group } of nodes) {
      const table = memory.get("memory");
      assert.ok(table !== undefined && table.free >= 0 && table.free + table.reserved === table.allocatable);
      for (const block of blocks) {
        if (block.nodes.includes(id)) assert.deepEqual([...group], [...block.nodes], `node ${id} serves two groups`);
      }
    }
  }

  const pod = fc.record({
    apps: fc.array(fc.constantFrom("1 1Gi", "2 3Gi", "4 6Gi", "500m 1Gi", "3 2Gi", "2 14Gi"), {
      minLength: 1,
      maxLength: 3,
    }),
    inits: fc.array(fc.constantFrom("2 2Gi", "4 4Gi", "sidecar 1 1Gi", "1 5Gi"), { maxLength: 2 }),
  });
  const step = fc.oneof(
    { weight: 5, arbitrary: pod.map((wish) => ({ do: "come" as const, wish })) },
    { weight: 3, arbitrary: fc.nat(20).map((which) => ({ do: "go" as const, which })) },
    { weight: 2, arbitrary: fc.nat(20).map((which) => ({ do: "start" as const, which })) },
    { weight: 1, arbitrary: fc.constant({ do: "restart" as const }) },
    {
      weight: 1,
      arbitrary: fc
        .array(fc.boolean(), { minLength: 2, maxLength: 2 })
        .map((inTime) => ({ do: "kill" as const, inTime })),
    },
  );
  const options = fc.constantFrom<Partial<CpuOptions>>(
    {},
    { wholeCoresOnly: true },
    { acrossNodes: true },
    { strictReservation: true },
    { acrossCores: true },
  );
  const policy = fc.constantFrom("none", "best-effort", "restricted", "single-numa-node");

  const named = (list: readonly string[], prefix: string): Record<string, string> =>
    Object.fromEntries(list.map((text, index) => [`${prefix}${index}`, text]));

  test("no CPU and no memory is given twice, none is lost, and what containers were made with is kept", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 25 }),
        options,
        policy,
        fc.constantFrom("container", "pod"),
        fc.constantFrom(machineA, machineC),
        async (steps, cpuOptions, alignment, scope, machine) => {
          const how = settings({
            cpu: { count: 2, options: cpuOptions },
            memory: true,
            alignment: { policy: alignment as "none", scope: scope as "pod" },
          });
          const here = new Map<PodUid, IdentifiedPod>();
          const holds = (uid: PodUid): boolean => here.has(uid);
          /** Pods of which a container was made, with what it was made with: nobody may ever take that from them. */
          const made = new Map<PodUid, string>();
          let lab = await started(how, { machine, holds });
          const { disk } = lab;
          const placeOf = (uid: PodUid): string => JSON.stringify(lab.placement.of(uid, "app0"));
          for (const [index, one] of steps.entries()) {
            const [first] = [...here.keys()].slice("which" in one ? one.which % Math.max(1, here.size) : 0);
            if (one.do === "come") {
              const arriving = sizedPod(`pod-${index}`, named(one.wish.apps, "app"), named(one.wish.inits, "init"));
              if (lab.placement.give(arriving).type === "given") here.set(uidOf(arriving), arriving);
            } else if (one.do === "go" && first !== undefined) {
              here.delete(first);
              made.delete(first);
              lab.placement.sweep();
            } else if (one.do === "start" && first !== undefined) {
              const placing = lab.placement.placeOf(here.get(first) as IdentifiedPod, "app0");
              await disk.finishWrites();
              await placing;
              if (lab.placement.of(first, "app0").exclusiveCpus) made.set(first, placeOf(first));
            } else if (one.do === "restart" || one.do === "kill") {
              if (one.do === "restart") await disk.finishWrites();
              else disk.kill(() => one.inTime.pop() ?? false);
              // Pods that nothing was made of come again, and are decided about again.
              const back = [...here.values()];
              lab = await started(how, { machine, holds, disk, running: [...made.keys()].map((uid) => `${uid} app0`) });
              for (const returning of back) {
                if (made.has(uidOf(returning))) lab.placement.takeOver(returning);
                else if (lab.placement.give(returning).type === "refused") here.delete(uidOf(returning));
              }
              lab.placement.sweep();
            }
            checkSums(lab, machine);
            for (const [uid, place] of made) assert.equal(placeOf(uid), place, `${uid} was moved`);
          }
        },
      ),
      { numRuns: sequences },
    );
  });
});

test("a pod that waits, and is looked at many times, is counted once", async () => {
  let obstacle: Error | undefined = new Error("a plugin is awaited");
  const counted: string[] = [];
  const nothing = (): void => {};
  const metrics = {
    cpu: { onRequest: nothing, onFailure: nothing, onAligned: nothing },
    memory: { onRequest: nothing, onFailure: nothing },
    onSingleNode: nothing,
    onAligned: (outcome: string) => void counted.push(outcome),
    monotonic: () => 0,
  };
  const provider: HintProvider = {
    hints: () => noOpinion,
    podHints: () => noOpinion,
    allocate() {
      if (obstacle !== undefined) throw obstacle;
    },
    mark: () => nothing,
  };
  const held = new Set<PodUid>();
  const placement = new Placement(
    settings({ cpu: { reserved: "0,8" }, alignment: { policy: "restricted" } }),
    {
      rootDir: "/root",
      files: new SlowDisk().forNewAgent(),
      clock,
      log: silentLogger,
      readTopology: async () => machineA,
      findRunning: async () => ({ areAny: false, has: () => false, ownerOf: () => undefined }),
      holds: (uid) => held.has(uid),
      metrics,
    },
    () => [provider],
  );
  await placement.start();
  const pod = sizedPod("p", { main: "2" });
  held.add(uidOf(pod));
  for (let looks = 0; looks < 5; looks++) assert.throws(() => placement.give(pod), obstacle);
  assert.deepEqual(counted, [], "it is not decided about");
  obstacle = undefined;
  for (let looks = 0; looks < 3; looks++) assert.equal(placement.give(pod).type, "given");
  assert.deepEqual(counted, ["given"]);
  obstacle = new AllocationError("UnexpectedAdmissionError", "its plugin refuses");
  assert.equal(placement.give(pod).type, "refused");
  assert.deepEqual(counted, ["given", "refused later"]);
  held.clear();
  placement.sweep();
  assert.equal(placement.give(pod).type, "refused");
  assert.deepEqual(counted.slice(2), ["refused"], "another pod of that uid");
});
