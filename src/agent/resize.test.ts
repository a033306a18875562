// Resizing pods in place, on virtual time over the simulated runtime.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type Amounts,
  both,
  conditions,
  container,
  given,
  mi,
  pod,
  restartFor,
  start,
  watched,
} from "../../test/support/resizing.ts";
import type { IdentifiedPod } from "../ground/model/index.ts";

describe("in place", () => {
  test("more of everything: the pod's limit before the container's, which is told once, and nothing restarts", async () => {
    await using node = await start();
    await node.want(pod([container("main", both({ cpu: "100m", memory: "64Mi" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.want(pod([container("main", both({ cpu: "500m", memory: "128Mi" }))], 2));
    await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")));
    assert.deepEqual(watched(node), [
      "raise memory and cpu of web",
      "main: 128 Mi, 50000 us, 512 shares",
      "lower memory and cpu of web",
    ]);
    assert.deepEqual(given(node, "main"), { shares: 512, quota: 50_000, memory: 128 * mi });
    const { restartCount, resources, allocatedResources } = node.container("web", "main");
    assert.equal(restartCount, 0);
    assert.deepEqual(resources, both({ cpu: "500m", memory: "128Mi" }));
    assert.deepEqual(allocatedResources, { cpu: "500m", memory: "128Mi" });
    assert.deepEqual(conditions(node), []);
    const now = JSON.stringify({ name: "main", resources: both({ cpu: "500m", memory: "128Mi" }) });
    assert.deepEqual(
      node.events.filter((event) => event.includes("Resize")),
      ["started", "completed"].map(
        (what) =>
          `web Resize${what === "started" ? "Started" : "Completed"}: Pod resize ${what}: {"containers":[${now}],"generation":2}`,
      ),
    );
  });

  /** Memory in Mi and CPUs in thousandths, of each container. */
  type Sizes = readonly (readonly [memory: number, cpu: number])[];
  for (const { what, from, to, changes } of [
    {
      what: "those that give memory back go first",
      from: [
        [100, 100],
        [200, 100],
        [50, 100],
      ],
      to: [
        [300, 100],
        [100, 100],
        [50, 100],
      ],
      changes: ["raise memory", "c1: 100 Mi, 100", "c0: 300 Mi, 100", "lower memory"],
    },
    {
      what: "those that give back both go first, and are told once",
      from: [
        [100, 100],
        [200, 200],
      ],
      to: [
        [200, 200],
        [100, 100],
      ],
      changes: ["raise memory and cpu", "c1: 100 Mi, 100", "c0: 200 Mi, 200", "lower memory and cpu"],
    },
    {
      what: "what nobody else gets needs no order",
      from: [
        [200, 100],
        [200, 100],
      ],
      to: [
        [100, 200],
        [100, 200],
      ],
      changes: ["raise memory and cpu", "c0: 100 Mi, 200", "c1: 100 Mi, 200", "lower memory and cpu"],
    },
    {
      what: "where memory moves one way and CPUs the other, memory is first",
      from: [
        [200, 100],
        [100, 200],
      ],
      to: [
        [100, 200],
        [200, 100],
      ],
      changes: [
        ...["raise memory", "c0: 100 Mi, 100", "c1: 200 Mi, 200", "lower memory"],
        ...["raise cpu", "c1: 200 Mi, 100", "c0: 100 Mi, 200", "lower cpu"],
      ],
    },
  ] satisfies readonly { what: string; from: Sizes; to: Sizes; changes: readonly string[] }[]) {
    test(`of several containers, ${what}`, async () => {
      await using node = await start();
      const asking = (sizes: Sizes, generation: number): IdentifiedPod =>
        pod(
          sizes.map(([memory, cpu], index) => container(`c${index}`, both({ memory: `${memory}Mi`, cpu: `${cpu}m` }))),
          generation,
        );
      await node.want(asking(from, 1));
      await node.until("it runs", () => node.phase("web") === "Running");
      await node.want(asking(to, 2));
      await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")));
      assert.deepEqual(
        watched(node).map((change) => change.replace(/00 us,.*/, "").replace(" of web", "")),
        changes,
      );
    });
  }

  test("a sidecar is resized as a regular container is", async () => {
    await using node = await start();
    const asking = (cpu: string, generation: number): IdentifiedPod =>
      pod([container("main", both({ cpu }))], generation, {
        initContainers: [container("side", both({ cpu }), { restartPolicy: "Always" })],
      });
    await node.want(asking("100m", 1));
    await node.until("it runs", () => node.running().length === 2);
    await node.want(asking("200m", 2));
    await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")));
    assert.deepEqual(given(node, "side"), given(node, "main"));
    assert.equal(node.container("web", "side").restartCount, 0);
  });

  test("what was asked for and taken back before it was granted leaves no trace", async () => {
    await using node = await start({ resizeSettings: { allocatable: () => new Map([["cpu", 1_000_000_000n]]) } });
    await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.want(pod([container("main", both({ cpu: "2" }))], 2));
    await node.advance(1_000);
    const [pending] = conditions(node);
    assert.equal(node.events.filter((event) => event.startsWith("web ResizeInfeasible")).length, 1);
    assert.deepEqual(
      [pending?.type, pending?.reason, pending?.message, pending?.observedGeneration],
      ["PodResizePending", "Infeasible", "Node didn't have enough capacity: cpu, requested: 2000, capacity: 1000", 2],
    );
    await node.want(pod([container("main", both({ cpu: "100m" }))], 3));
    await node.advance(1_000);
    assert.deepEqual(conditions(node), []);
    assert.deepEqual(watched(node), []);
  });
});

describe("by a restart", () => {
  for (const { changes, restarts } of [
    { changes: { cpu: "200m", memory: "64Mi" }, restarts: 0 },
    { changes: { cpu: "100m", memory: "128Mi" }, restarts: 1 },
    { changes: { cpu: "200m", memory: "128Mi" }, restarts: 1 },
  ]) {
    test(`memory needs one, and ${JSON.stringify(changes)} is asked for`, async () => {
      await using node = await start();
      const asking = (amounts: Amounts, generation: number): IdentifiedPod =>
        pod(
          [container("main", both(amounts), restartFor("memory")), container("other", both({ cpu: "50m" }))],
          generation,
        );
      await node.want(asking({ cpu: "100m", memory: "64Mi" }, 1));
      await node.until("it runs", () => node.phase("web") === "Running");
      await node.want(asking(changes, 2));
      await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")));
      assert.equal(node.container("web", "main").restartCount, restarts);
      assert.equal(node.container("web", "other").restartCount, 0);
      assert.deepEqual(node.container("web", "main").resources, both(changes));
      assert.equal(
        node.events.some((event) => event.includes("resize requires restart")),
        restarts === 1,
      );
    });
  }
});

test("no other pod is woken by a resize", async () => {
  await using node = await start();
  const others = Array.from({ length: 10 }, (_, index) =>
    pod([container("main", both({ cpu: "50m" }))], 1, { name: `other-${index}` }),
  );
  await node.want(...others, pod([container("main", both({ cpu: "100m" }))], 1));
  await node.until("they run", () => node.running().length === 11);
  await node.advance(1_000);
  const syncs = async (): Promise<number> => {
    const text = await node.figures.main.text();
    const counts = [...text.matchAll(/^kubelet_pod_worker_duration_seconds_count\{.*\} (\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  };
  const before = await syncs();
  assert.ok(before >= 11);
  await node.want(...others, pod([container("main", both({ cpu: "300m", memory: "64Mi" }))], 2));
  await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")));
  const after = await syncs();
  assert.ok(after > before && after - before <= 3, `${after - before} syncs`);
});

test("metrics tell what was asked for, what waits and how long it took", async () => {
  await using node = await start({ resizeSettings: { allocatable: () => new Map([["cpu", 1_000_000_000n]]) } });
  await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
  await node.until("it runs", () => node.phase("web") === "Running");
  await node.want(pod([container("main", both({ cpu: "300m", memory: "64Mi" }))], 2));
  await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")));
  await node.want(pod([container("main", both({ cpu: "2", memory: "64Mi" }))], 3));
  await node.advance(1_000);
  const text = await node.figures.main.text();
  for (const line of [
    'kubelet_container_requested_resizes_total{operation="increase",requirement="limits",resource="cpu"} 2',
    'kubelet_container_requested_resizes_total{operation="add",requirement="requests",resource="memory"} 1',
    'kubelet_pod_infeasible_resizes_total{reason_detail="insufficient_node_allocatable"} 1',
    'kubelet_pod_pending_resizes{reason="infeasible"} 1',
    'kubelet_pod_pending_resizes{reason="deferred"} 0',
    "kubelet_pod_in_progress_resizes 0",
    'kubelet_pod_resize_duration_milliseconds_count{success="true"} 1',
  ]) {
    assert.ok(
      text.includes(line),
      `${line}\n${text
        .split("\n")
        .filter((each) => each.includes("resize"))
        .join("\n")}`,
    );
  }
});
