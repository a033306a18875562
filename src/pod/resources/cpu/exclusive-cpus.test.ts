import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cpuManager } from "../../../../test/support/cpu-manager.ts";
import { machineA, machineC, machineU } from "../../../../test/support/made-up-topology.ts";
import { sized, sizedPod } from "../../../../test/support/pinned-pods.ts";
import { testContainer, testPod } from "../../../../test/support/pods.ts";
import { CpuSet } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { Hints } from "../topology/hints.ts";
import type { NumaNodes } from "../topology/numa-nodes.ts";

const uid = (text: string): PodUid => text as PodUid;

describe("who gets CPUs of its own", () => {
  test("each container of a Guaranteed pod is judged by itself", () => {
    const { give, cpus } = cpuManager(machineA, "0,8");
    assert.deepEqual(give(sizedPod("a", { pinned: "2", shared: "1500m" })), { pinned: "1,9", shared: "" });
    assert.equal(String(cpus.shared), "0,2-8,10-15");
  });

  test("not a Burstable pod, though it asks for whole CPUs", () => {
    const { give, counted } = cpuManager(machineA, "0,8");
    const resources = { requests: { cpu: "2" }, limits: { cpu: "2" } };
    assert.deepEqual(give(testPod({ containers: [testContainer("main", { resources })] })), { main: "" });
    assert.equal(counted.requests, 0);
  });

  test("not a pod with resources as a whole: no CPUs, no hint, nothing counted", () => {
    const { give, cpus, counted } = cpuManager(machineA, "0,8");
    const requests = { cpu: "2", memory: "1Gi" };
    const pod = testPod({ containers: [sized("main", "2")], resources: { requests, limits: requests } });
    assert.deepEqual(give(pod), { main: "" });
    assert.equal(cpus.hints(pod, sized("main", "2")).size + cpus.podHints(pod).size + counted.requests, 0);
  });

  test("more than there are: an error that names both, and nothing is kept of the pod", () => {
    const { give, cpus, counted } = cpuManager(machineA, "0,8");
    assert.throws(() => give(sizedPod("a", { one: "10", two: "6" })), {
      name: "AllocationError",
      reason: "UnexpectedAdmissionError",
      message:
        "Allocate failed due to not enough cpus available to satisfy request: requested=6, available=4, which is unexpected",
    });
    assert.equal(cpus.state.exclusive.size, 0);
    assert.equal(String(cpus.shared), "0-15");
    assert.deepEqual([counted.requests, counted.failures], [2, 1]);
  });
});

describe("whole cores only", () => {
  const wholeCores = { wholeCoresOnly: true };

  test("half a core is refused, and who asks for none is not touched", () => {
    const { give, counted } = cpuManager(machineA, "0,8", wholeCores);
    assert.throws(() => give(sizedPod("a", { main: "3" })), {
      reason: "SMTAlignmentError",
      message: "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
    });
    assert.deepEqual(give(sizedPod("b", { main: "500m" })), { main: "" });
    assert.deepEqual(counted.aligned, ["physical_cpu false"]);
  });

  test("siblings of reserved CPUs are never given", () => {
    const { give } = cpuManager(machineA, "0", wholeCores);
    assert.throws(() => give(sizedPod("a", { main: "15" })), /not multiple/);
    assert.throws(() => give(sizedPod("a", { main: "16" })), {
      message:
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 14, requested CPUs = 16, CPUs per core = 2",
    });
    assert.deepEqual(give(sizedPod("a", { main: "14" })), { main: "1-7,9-15" });
  });

  test("not even when a hint says to begin there", () => {
    const { cpus } = cpuManager(machineA, "0", wholeCores);
    const pod = sizedPod("a", { main: "8" });
    cpus.allocate(pod, sized("main", "8"), { nodes: 0b01, isPreferred: false });
    assert.equal(String(cpus.of(uid("a"), "main")), "1-4,9-12");
  });

  test("who has CPUs keeps them, however few are left for others", () => {
    const { give } = cpuManager(machineA, "0,8", wholeCores);
    const pod = sizedPod("a", { main: "8" });
    assert.deepEqual(give(pod), { main: "4-7,12-15" });
    assert.deepEqual(give(pod), { main: "4-7,12-15" });
  });

  test("CPUs of an init container count as free for the others of its pod", () => {
    const { give } = cpuManager(machineA, "0,8", wholeCores);
    assert.deepEqual(give(sizedPod("a", { app: "8" }, { init: "8" })), { init: "4-7,12-15", app: "4-7,12-15" });
  });
});

describe("init containers and sidecars", () => {
  test("those that come later use CPUs of init containers again, and take more where they need more", () => {
    const { give, cpus } = cpuManager(machineA, "0,8");
    const given = give(sizedPod("a", { app1: "2", app2: "4" }, { init: "4" }));
    assert.deepEqual(given, { init: "1-2,9-10", app1: "1,9", app2: "2-3,10-11" });
    assert.equal(String(cpus.state.shared), "0,4-8,12-15");
  });

  test("a sidecar runs on, and so keeps its CPUs to itself", () => {
    const { give } = cpuManager(machineA, "0,8");
    const given = give(sizedPod("a", { app: "2" }, { sidecar: "sidecar 2", init: "2" }));
    assert.deepEqual(given, { sidecar: "1,9", init: "2,10", app: "2,10" });
  });

  test("all of it is free again when the pod is gone", () => {
    const { give, cpus } = cpuManager(machineA, "0,8");
    give(sizedPod("a", { app1: "2", app2: "4" }, { init: "4" }));
    give(sizedPod("b", { app: "2" }));
    cpus.retain((other) => other === "b");
    assert.deepEqual([...cpus.state.exclusive.keys()], ["b"]);
    assert.equal(String(cpus.state.shared), "0-3,5-11,13-15");
  });
});

test("a strict reservation: whoever shares stays off the reserved CPUs while there are others", () => {
  const { give, cpus } = cpuManager(machineA, "0,8", { strictReservation: true });
  assert.equal(String(cpus.shared), "1-7,9-15");
  give(sizedPod("a", { main: "13" }));
  assert.equal(String(cpus.shared), "11");
  give(sizedPod("b", { main: "1" }));
  // All others are somebody's own, and nobody may be put there.
  assert.equal(String(cpus.shared), "0,8");
});

describe("hints", () => {
  const shown = (hints: Hints, numa: NumaNodes): string =>
    (hints.get("cpu") ?? [])
      .map(({ nodes, isPreferred }) => `{${numa.idsOf(nodes ?? 0)}}${isPreferred ? "p" : ""}`)
      .join(" ");

  for (const [count, expected] of [
    ["6", "{0}p {1}p {0,1}"],
    ["7", "{1}p {0,1}"],
    ["9", "{0,1}p"],
    ["15", ""],
  ] as const) {
    test(`machine A: ${count}`, () => {
      const { cpus, numa } = cpuManager(machineA, "0,8");
      const pod = sizedPod("a", { main: count });
      assert.equal(shown(cpus.hints(pod, sized("main", count)), numa), expected);
      assert.equal(shown(cpus.podHints(pod), numa), expected);
    });
  }

  test("what is left of node 1 is not enough: both, and that is not preferred", () => {
    const { cpus, numa } = cpuManager(machineA, "0,8");
    cpus.allocate(sizedPod("other", { main: "4" }), sized("main", "4"), { nodes: 0b10, isPreferred: true });
    assert.equal(shown(cpus.hints(sizedPod("a", { main: "7" }), sized("main", "7")), numa), "{0,1}");
  });

  test("who has CPUs points to them", () => {
    const { cpus, numa } = cpuManager(machineA, "0,8");
    const pod = sizedPod("a", { main: "4" });
    cpus.allocate(pod, sized("main", "4"), { nodes: 0b10, isPreferred: true });
    assert.equal(shown(cpus.hints(pod, sized("main", "4")), numa), "{1}p {0,1}");
    assert.equal(shown(cpus.podHints(pod), numa), "{1}p {0,1}");
  });

  test("what is used again must lie within", () => {
    const { cpus, numa } = cpuManager(machineA, "0,8");
    const pod = sizedPod("a", { app: "2" }, { init: "2" });
    cpus.allocate(pod, sized("init", "2"), { nodes: 0b10, isPreferred: true });
    assert.equal(shown(cpus.hints(pod, sized("app", "2")), numa), "{1}p {0,1}");
  });

  test("a whole pod: all that run on, or an init container beside the sidecars before it", () => {
    const { cpus, numa } = cpuManager(machineA, "0,8");
    assert.equal(shown(cpus.podHints(sizedPod("a", { one: "5", two: "5", three: "500m" })), numa), "{0,1}p");
    assert.equal(
      shown(cpus.podHints(sizedPod("a", { app: "1" }, { side: "sidecar 2", init: "5" })), numa),
      "{1}p {0,1}",
    );
  });

  test("by socket: NUMA nodes of one socket are as good as one", () => {
    const { cpus, numa } = cpuManager(machineC, "0,16", { bySocket: true });
    const hints = shown(cpus.hints(sizedPod("a", { main: "8" }), sized("main", "8")), numa);
    assert.equal(
      hints
        .split(" ")
        .filter((hint) => hint.endsWith("p"))
        .join(" "),
      "{1}p {2}p {3}p {0,1}p {2,3}p",
    );
    const pod = sizedPod("a", { main: "10" });
    cpus.allocate(pod, sized("main", "10"), { nodes: 0b0100, isPreferred: true });
    assert.ok(cpus.of(uid("a"), "main")?.isWithin(CpuSet.parse("8-15,24-31")));
  });
});

test("a container within one cache is counted as aligned", () => {
  const { give, counted } = cpuManager(machineU, "0,16", { byCache: true });
  give(sizedPod("a", { main: "8" }));
  give(sizedPod("b", { main: "10" }));
  assert.deepEqual(counted.aligned, ["uncore_cache true"]);
});

describe("with the topology manager", () => {
  for (const [policy, scope, outcome] of [
    ["restricted", "pod", "taken"],
    ["single-numa-node", "pod", "refused"],
    ["single-numa-node", "container", "taken"],
    ["best-effort", "pod", "taken"],
  ] as const) {
    test(`5+5 of A, ${policy}, ${scope}: ${outcome}`, () => {
      const { give, cpus } = cpuManager(machineA, "0,8", {}, { policy, scope });
      const pod = sizedPod("a", { one: "5", two: "5" });
      if (outcome === "taken") {
        give(pod);
        assert.equal(cpus.of(uid("a"), "two")?.size, 5);
      } else {
        assert.throws(() => give(pod), {
          reason: "TopologyAffinityError",
          message: "Resources cannot be allocated with Topology locality",
        });
        assert.equal(cpus.state.exclusive.size, 0);
      }
    });
  }

  test("a pod without wishes is always taken", () => {
    const { give } = cpuManager(machineA, "0,8", {}, { policy: "single-numa-node" });
    assert.deepEqual(give(testPod()), { main: "" });
  });

  test("fragments are refused by the stricter policies", () => {
    for (const policy of ["restricted", "single-numa-node"] as const) {
      const { give } = cpuManager(machineA, "0,8", {}, { policy });
      assert.deepEqual(give(sizedPod("a", { main: "4" })), { main: "1-2,9-10" });
      assert.deepEqual(give(sizedPod("b", { main: "4" })), { main: "4-5,12-13" });
      assert.throws(() => give(sizedPod("c", { main: "5" })), { reason: "TopologyAffinityError" });
    }
  });
});
