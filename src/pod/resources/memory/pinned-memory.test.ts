import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { machineA, madeUpTopology } from "../../../../test/support/made-up-topology.ts";
import { sized, sizedPod } from "../../../../test/support/pinned-pods.ts";
import { type IdentifiedPod, type PodUid, parseQuantity } from "../../../ground/model/index.ts";
import type { RunningContainers } from "../running-containers.ts";
import { Alignment, type AlignmentSettings } from "../topology/alignment.ts";
import { NumaNodes } from "../topology/numa-nodes.ts";
import { freshMemory } from "./machine-memory.ts";
import { decodeMemoryFile, encodeMemoryFile } from "./memory-file.ts";
import type { MemoryByNode } from "./memory-state.ts";
import { PinnedMemory } from "./pinned-memory.ts";
import { type MemoryReserve, memoryReserve } from "./reserved-memory.ts";
import { restoreMemory } from "./restore-memory.ts";

const gibi = 1024 ** 3;
const reserve: MemoryReserve = new Map([[0, new Map([["memory", gibi]])]]);

/** Two nodes of 10 Gi, of which node 0 keeps one for itself, unless told otherwise. */
function memoryManager(
  policy: AlignmentSettings["policy"] = "none",
  { machine = machineA, scope = "container" as AlignmentSettings["scope"] } = {},
) {
  const numa = new NumaNodes(machine.nodes.map(({ id }) => id));
  const counted = { requests: 0, failures: 0 };
  const memory = new PinnedMemory(
    { machine: freshMemory(machine, reserve), blocks: new Map() },
    {
      numa,
      onChange: () => undefined,
      metrics: { onRequest: () => counted.requests++, onFailure: () => counted.failures++ },
    },
  );
  const alignment = new Alignment({ policy, scope, prefersClosest: false }, numa, {
    providers: [memory],
    distances: [],
  });
  return {
    memory,
    counted,
    give: (pod: IdentifiedPod) => alignment.give(pod),
    hints: (pod: IdentifiedPod) =>
      (memory.podHints(pod).get("memory") ?? [])
        .map(({ nodes, isPreferred }) => `{${numa.idsOf(nodes ?? 0)}}${isPreferred ? "p" : ""}`)
        .join(" "),
  };
}

/** "0: 3 free [0] x1": what is left on each node in Gi, its group, and how many have something there. */
function shown(machine: MemoryByNode, type = "memory"): readonly string[] {
  return [...machine].map(
    ([id, { tables, group, assignments }]) =>
      `${id}: ${(tables.get(type)?.free ?? 0) / gibi} [${group}] x${assignments}`,
  );
}

const pod = (uid: string, memory: string): IdentifiedPod => sizedPod(uid, { main: `1 ${memory}` });
const unexpected = (text: string) => ({
  reason: "UnexpectedAdmissionError",
  message: `Allocate failed due to [memorymanager] ${text}, which is unexpected`,
});

describe("the worked example", () => {
  test("single nodes, until none has as much", () => {
    const { memory, give, hints, counted } = memoryManager();
    assert.equal(hints(pod("c1", "6Gi")), "{0}p {1}p {0,1}");
    give(pod("c1", "6Gi"));
    assert.deepEqual(shown(memory.state.machine), ["0: 3 [0] x1", "1: 10 [1] x0"]);
    assert.equal(hints(pod("c2", "6Gi")), "{1}p");
    give(pod("c2", "6Gi"));
    assert.deepEqual(shown(memory.state.machine), ["0: 3 [0] x1", "1: 4 [1] x1"]);
    assert.equal(hints(pod("c3", "5Gi")), "");
    const before = memory.state;
    assert.throws(
      () => give(pod("c3", "5Gi")),
      unexpected("failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"),
    );
    assert.equal(memory.state, before);
    assert.deepEqual(counted, { requests: 3, failures: 1 });
    assert.deepEqual(memory.nodesOf("c2" as PodUid, "main"), [1]);
    assert.deepEqual(memory.nodesOf("c3" as PodUid, "main"), []);
  });

  for (const policy of ["best-effort", "restricted"] as const) {
    test(`the same with ${policy}`, () => {
      const { give } = memoryManager(policy);
      give(pod("c1", "6Gi"));
      give(pod("c2", "6Gi"));
      assert.throws(() => give(pod("c3", "5Gi")), unexpected("preferred hint violates NUMA node allocation"));
    });
  }

  for (const [policy, outcome] of [
    ["none", "taken"],
    ["best-effort", "taken"],
    ["restricted", "refused"],
    ["single-numa-node", "refused"],
  ] as const) {
    test(`a group of nodes, ${policy}: what would fit on one is ${outcome}`, () => {
      const { memory, give, hints } = memoryManager(policy);
      assert.equal(hints(pod("d1", "12Gi")), "{0,1}p");
      // The strictest policy would not take it, but may find it there from before.
      memory.allocate(pod("d1", "12Gi"), sized("main", "1 12Gi"), { nodes: 0b11, isPreferred: true });
      assert.deepEqual(shown(memory.state.machine), ["0: 0 [0,1] x1", "1: 7 [0,1] x1"]);
      assert.equal(hints(pod("d2", "2Gi")), "{0,1}");
      if (outcome === "taken") {
        give(pod("d2", "2Gi"));
        assert.deepEqual(memory.nodesOf("d2" as PodUid, "main"), [0, 1]);
      } else {
        assert.throws(() => give(pod("d2", "2Gi")), { reason: "TopologyAffinityError" });
      }
    });
  }
});

test("single-numa-node refuses what takes two", () => {
  const { give } = memoryManager("single-numa-node");
  assert.throws(() => give(pod("d1", "12Gi")), { reason: "TopologyAffinityError" });
});

test("a hint for one node of a group: it serves in the group, and never beside it", () => {
  const { memory, give } = memoryManager();
  give(pod("d1", "12Gi"));
  memory.allocate(pod("d2", "2Gi"), sized("main", "1 2Gi"), { nodes: 0b10, isPreferred: false });
  assert.deepEqual(shown(memory.state.machine), ["0: 0 [0,1] x2", "1: 5 [0,1] x2"]);
});

test("a hint that is too narrow is widened, as long as that is no worse", () => {
  const { memory } = memoryManager();
  memory.allocate(pod("a", "12Gi"), sized("main", "1 12Gi"), { nodes: 0b01, isPreferred: true });
  assert.deepEqual(memory.nodesOf("a" as PodUid, "main"), [0, 1]);
  const other = memoryManager().memory;
  other.allocate(pod("b", "9Gi"), sized("main", "1 9Gi"), { nodes: 0b01, isPreferred: true });
  assert.throws(
    () => other.allocate(pod("c", "2Gi"), sized("main", "1 2Gi"), { nodes: 0b01, isPreferred: true }),
    unexpected("failed to find NUMA nodes to extend the current topology hint"),
  );
});

test("huge pages: a block for each type, all from the same nodes; a size that the machine has not is not to be had", () => {
  const hugePages = new Map([[2n << 20n, 2 * gibi]]);
  const machine = madeUpTopology({ sockets: 2, coresPerNode: 4, hugePages });
  const { memory, give } = memoryManager("none", { machine });
  // The pages are memory too, which nobody else can have.
  assert.deepEqual(shown(memory.state.machine), ["0: 7 [0] x0", "1: 8 [1] x0"]);
  give(sizedPod("a", { main: "1 1Gi hugepages-2Mi=1Gi" }));
  assert.deepEqual(shown(memory.state.machine), ["0: 6 [0] x2", "1: 8 [1] x0"]);
  assert.deepEqual(shown(memory.state.machine, "hugepages-2Mi"), ["0: 1 [0] x2", "1: 2 [1] x0"]);
  assert.deepEqual(memory.state.blocks.get("a" as PodUid)?.get("main"), [
    { nodes: [0], type: "memory", bytes: gibi },
    { nodes: [0], type: "hugepages-2Mi", bytes: gibi },
  ]);
  assert.throws(() => give(sizedPod("b", { main: "1 1Gi hugepages-1Gi=1Gi" })), /no NUMA nodes with enough memory/);
});

describe("init containers", () => {
  test("what one has is used again, and what is left goes back when the next starts", () => {
    const { memory, give } = memoryManager();
    const both = sizedPod("a", { app: "1 3Gi" }, { init: "1 4Gi" });
    give(both);
    assert.deepEqual(shown(memory.state.machine), ["0: 5 [0] x2", "1: 10 [1] x0"]);
    const sizes = (name: string) =>
      memory.state.blocks
        .get("a" as PodUid)
        ?.get(name)
        ?.map(({ bytes }) => bytes / gibi);
    assert.deepEqual([sizes("init"), sizes("app")], [[1], [3]]);
    memory.starting(both, "init");
    assert.deepEqual(sizes("init"), [1]);
    memory.starting(both, "app");
    assert.deepEqual(shown(memory.state.machine), ["0: 6 [0] x1", "1: 10 [1] x0"]);
    assert.equal(sizes("init"), undefined);
  });

  test("a second one uses that of the first again, a sidecar keeps its own", () => {
    const { memory, give } = memoryManager();
    give(sizedPod("a", { app: "1 1Gi" }, { one: "1 4Gi", side: "sidecar 1 1Gi", two: "1 5Gi" }));
    // One: 4; of which the sidecar keeps 1; two needs 2 more; the app uses again.
    assert.deepEqual(shown(memory.state.machine), ["0: 3 [0] x4", "1: 10 [1] x0"]);
    memory.retain(() => false);
    assert.deepEqual(shown(memory.state.machine), ["0: 9 [0] x0", "1: 10 [1] x0"]);
  });

  test("a whole pod asks for its peak; what only init containers ask for does not count", () => {
    const { hints } = memoryManager("none", { scope: "pod" });
    assert.equal(hints(sizedPod("a", { one: "1 5Gi", two: "1 5Gi" })), "{1}p {0,1}");
    assert.equal(hints(sizedPod("a", { one: "1 1Gi" }, { init: "1 11Gi" })), "{0,1}p");
  });
});

describe("reserved memory", () => {
  const withheld = new Map([["memory", parseQuantity("1Gi")]]);
  const settings = (...limits: readonly (readonly [number, Readonly<Record<string, string>>])[]) =>
    limits.map(([numaNode, own]) => ({ numaNode, limits: own }));

  test("the sum must be what the node withholds, to the byte", () => {
    const given = memoryReserve(settings([0, { memory: "500Mi" }], [1, { memory: "524Mi" }]), [0, 1], withheld);
    assert.deepEqual([given.get(0)?.get("memory"), given.get(1)?.get("memory")], [500 * 1024 ** 2, 524 * 1024 ** 2]);
  });

  for (const [what, limits, message] of [
    [
      "too little",
      settings([0, { memory: "924Mi" }]),
      'the total amount "924Mi" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature',
    ],
    [
      "a node that is not there",
      settings([3, { memory: "1Gi" }]),
      "the reserved memory configuration references a NUMA node 3 that does not exist on this machine",
    ],
    [
      "huge pages",
      settings([0, { memory: "1Gi", "hugepages-2Mi": "2Mi" }]),
      /^the total amount "2Mi" of type "hugepages-2Mi" is not equal to the value "0" determined by Node Allocatable feature; huge pages can't/,
    ],
  ] as const) {
    test(what, () => assert.throws(() => memoryReserve(limits, [0, 1], withheld), { message }));
  }

  test("none at all", () => {
    assert.throws(() => memoryReserve([], [0], new Map()), {
      message: "[memorymanager] you should specify the system reserved memory",
    });
  });
});

describe("the file", () => {
  test("the kubelet's own checksums", () => {
    assert.equal(
      encodeMemoryFile("None", { machine: new Map(), blocks: new Map() }),
      '{"policyName":"None","machineState":{},"checksum":4236770233}',
    );
    const table = { total: 2048, systemReserved: 512, allocatable: 1536, reserved: 512, free: 1024 };
    const filled = encodeMemoryFile("static", {
      machine: new Map([[0, { assignments: 0, group: [], tables: new Map([["memory", table]]) }]]),
      blocks: new Map([["pod" as PodUid, new Map([["container1", [{ nodes: [0], type: "memory", bytes: 512 }]]])]]),
    });
    assert.equal(JSON.parse(filled).checksum, 4215593881);
    assert.equal(encodeMemoryFile("static", decodeMemoryFile(filled).state), filled);
  });

  const fresh = freshMemory(machineA, reserve);
  async function restore(
    text: string | undefined,
    now: MemoryByNode | undefined = fresh,
    running: readonly string[] = [],
  ) {
    const found: RunningContainers = {
      areAny: running.length > 0,
      has: (uid, name) => running.includes(`${uid} ${name}`),
      ownerOf: () => undefined,
    };
    const restorer = { path: "/root/memory_manager_state", fresh: now, findRunning: async () => found };
    const { state, mended } = await restoreMemory(text, restorer);
    return { machine: shown(state.machine), mended };
  }

  const { memory, give } = memoryManager();
  give(pod("a", "6Gi"));
  give(pod("b", "4Gi"));
  memory.retain((uid) => uid === "b");
  const kept = encodeMemoryFile("Static", memory.state);
  const one = ["0: 9 [0] x0", "1: 6 [1] x1"];

  test("what fits is kept to the byte", async () => {
    assert.deepEqual(await restore(kept), { machine: one, mended: undefined });
    assert.deepEqual(await restore(undefined), { machine: ["0: 9 [0] x0", "1: 10 [1] x0"], mended: undefined });
  });

  test("memory given back elsewhere in its group is no difference", async () => {
    const grouped = memoryManager();
    grouped.give(pod("a", "12Gi"));
    grouped.give(pod("b", "3Gi"));
    grouped.memory.retain((uid) => uid === "b");
    const { mended } = await restore(encodeMemoryFile("Static", grouped.memory.state));
    assert.equal(mended, undefined);
  });

  test("a node with a few bytes more or less: everybody has what he had", async () => {
    const other = freshMemory(
      madeUpTopology({ sockets: 2, coresPerNode: 4, memoryBytes: 10 * gibi + 2 ** 20 }),
      reserve,
    );
    const { mended } = await restore(kept, other, ["b main"]);
    assert.equal(mended, "[memorymanager] the expected machine state is different from the real one");
  });

  for (const [what, text, now, mended] of [
    [
      "a node that is gone",
      kept,
      freshMemory({ nodes: machineA.nodes.slice(0, 1) }, reserve),
      "[memorymanager] (pod: b, container: main) the memory assignment uses the NUMA that does not exist",
    ],
    [
      "a node that has too little by now",
      kept,
      freshMemory(madeUpTopology({ sockets: 2, coresPerNode: 4, memoryBytes: 3 * gibi }), reserve),
      "[memorymanager] the expected machine state is different from the real one",
    ],
  ] as const) {
    test(`${what}: let go, unless it runs there`, async () => {
      assert.equal((await restore(text, now)).mended, mended);
      await assert.rejects(restore(text, now, ["b main"]), { message: `start memory manager error: ${mended}` });
    });
  }

  test("damaged, or of another policy: refused while somebody runs", async () => {
    const advice =
      ', please drain this node and delete the memory manager checkpoint file "/root/memory_manager_state" before restarting Kubelet';
    const broken = kept.replace('"size":4294967296', '"size":4294967297');
    assert.equal((await restore(broken)).mended, "checkpoint is corrupted");
    await assert.rejects(restore(broken, fresh, ["other main"]), {
      message: `start memory manager error: could not restore state from checkpoint: checkpoint is corrupted${advice}`,
    });
    // Here people can't leave the checksum out.
    assert.equal((await restore(kept.replace(/"checksum":\d+/, '"checksum":0'))).mended, "checkpoint is corrupted");
    await assert.rejects(
      restoreMemory(kept, {
        path: "/root/memory_manager_state",
        fresh: undefined,
        findRunning: async () => ({ areAny: true, has: () => true, ownerOf: () => undefined }),
      }),
      {
        message: `start memory manager error: could not restore state from checkpoint: [memorymanager] configured policy "None" differs from state checkpoint policy "Static"${advice}`,
      },
    );
  });
});

test("an init container that comes again does not count on memory of one that runs after it", () => {
  const { memory, give } = memoryManager();
  give(pod("other", "10Gi"));
  const again = sizedPod("again", { app: "1 3Gi" }, { first: "1 5Gi", second: "1 2Gi" });
  give(again);
  memory.starting(again, "second");
  assert.deepEqual(shown(memory.state.machine), ["0: 4 [0] x2", "1: 0 [1] x1"]);
  assert.throws(() => give(again), /no NUMA nodes with enough memory is available/);
  assert.deepEqual(shown(memory.state.machine), ["0: 4 [0] x2", "1: 0 [1] x1"]);
});
