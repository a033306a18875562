// Resizing pods as a whole (`spec.resources`) and their init containers, on virtual time over the simulated runtime.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { enginePod, TestEngine, type TestEngineOptions } from "../../test/support/test-engine.ts";
import { exitsAfter } from "../beside/hollow/index.ts";
import type { Container, IdentifiedPod, PodSpec } from "../ground/model/index.ts";

type Resources = NonNullable<Container["resources"]>;

const mi = 1024 * 1024;
const amounts = (cpu: string, memory: string): Resources => ({
  requests: { cpu, memory },
  limits: { cpu, memory },
});
const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: "busybox:1", ...more });
const podOf = (generation: number, spec: Partial<PodSpec>): IdentifiedPod =>
  enginePod("web", { containers: [container("main")], ...spec }, { generation });
const restartFor = (resourceName: string): Partial<Container> => ({
  resizePolicy: [{ resourceName, restartPolicy: "RestartContainer" }],
});

function given(node: TestEngine, name: string): object {
  const found = node.runtime
    .containers()
    .find(({ config, life }) => config.metadata?.name === name && life.step === "running");
  const { cpuQuota, memoryLimitInBytes } = found?.resources ?? {};
  return { quota: Number(cpuQuota), memory: Number(memoryLimitInBytes) / mi };
}

const conditions = (node: TestEngine): readonly string[] =>
  (node.status("web").conditions ?? [])
    .filter(({ type }) => type.startsWith("PodResize"))
    .map(({ type, reason = "", message = "" }) => `${type} ${reason} ${message}`.trim());
const isDone = (node: TestEngine) => (): boolean =>
  node.events.some((event) => event.startsWith("web ResizeCompleted"));
const start = (options: TestEngineOptions = {}): Promise<TestEngine> => TestEngine.start({ source: "api", ...options });

async function running(node: TestEngine, pod: IdentifiedPod): Promise<void> {
  await node.want(pod);
  await node.until("it runs", () => node.phase("web") === "Running");
}

describe("a pod as a whole", () => {
  test("containers without limits have the pod's, before and after; its cgroup is changed around them", async () => {
    await using node = await start();
    const own = amounts("50m", "16Mi");
    const containers = [container("main"), container("own", { resources: own })];
    await running(node, podOf(1, { containers, resources: amounts("200m", "128Mi") }));
    assert.deepEqual(given(node, "main"), { quota: 20_000, memory: 128 });
    await node.want(podOf(2, { containers, resources: amounts("100m", "256Mi") }));
    await node.until("it is done", isDone(node));
    assert.deepEqual(given(node, "main"), { quota: 10_000, memory: 256 });
    assert.deepEqual(given(node, "own"), { quota: 5_000, memory: 16 });
    assert.deepEqual(node.cgroupChanges, ["raise memory and cpu of web", "lower memory and cpu of web"]);
    for (const name of ["main", "own"]) assert.equal(node.container("web", name).restartCount, 0);
    const { resources, allocatedResources } = node.status("web") as {
      resources?: Resources;
      allocatedResources?: object;
    };
    assert.deepEqual(resources, amounts("100m", "256Mi"));
    assert.deepEqual(allocatedResources, { cpu: "100m", memory: "256Mi" });
    assert.deepEqual(conditions(node), []);
  });

  test("a container that has the pod's limit and must restart for it does, once; another one does not", async () => {
    await using node = await start();
    const containers = [container("main", restartFor("memory")), container("other")];
    await running(node, podOf(1, { containers, resources: amounts("200m", "128Mi") }));
    await node.want(podOf(2, { containers, resources: amounts("200m", "256Mi") }));
    await node.until("it is done", isDone(node));
    await node.until("both run", () => node.running().length === 2);
    assert.deepEqual(given(node, "main"), { quota: 20_000, memory: 256 });
    assert.equal(node.container("web", "main").restartCount, 1);
    assert.equal(node.container("web", "other").restartCount, 0);
  });

  test("memory that is in use is not taken from it; what starts meanwhile is not restarted for it", async () => {
    await using node = await start();
    const containers = [
      container("main", { resources: amounts("50m", "32Mi") }),
      container("other", restartFor("memory")),
    ];
    node.runtime.behave("other", exitsAfter(1_000, 1));
    await running(node, podOf(1, { containers, resources: amounts("200m", "256Mi") }));
    node.podCgroups.memoryLimit = () => 128n * BigInt(mi);
    node.podMemoryUsage = 200n * BigInt(mi);
    await node.want(podOf(2, { containers, resources: amounts("200m", "128Mi") }));
    const refused = `cannot decrease memory limits: attempting to set pod memory limit (${128 * mi}) below current usage (${200 * mi})`;
    await node.until("it is said", () => conditions(node).includes(`PodResizeInProgress Error ${refused}`));
    await node.until("it waits", () => node.running().length === 1);
    node.runtime.behave("other", { type: "runs", steps: [{ do: "sleepForever" }], onTerm: "die" });
    await node.until("it runs again", () => node.running().length === 2);
    const { restartCount } = node.container("web", "other");
    await node.advance(60_000);
    node.podMemoryUsage = 0n;
    await node.until("it is done", isDone(node));
    assert.deepEqual(given(node, "other"), { quota: 20_000, memory: 128 });
    assert.equal(node.container("web", "other").restartCount, restartCount);
  });

  test("an agent that is ended at any call of it brings it to its end, and nothing restarts", async () => {
    for (let nth = 1; nth <= 8; nth++) {
      await using node = await start();
      const containers = [container("main"), container("strict", restartFor("storage"))];
      await running(node, podOf(1, { containers, resources: amounts("200m", "128Mi") }));
      const before = node.calls();
      const changing = node.want(podOf(2, { containers, resources: amounts("300m", "64Mi") }));
      for (let steps = 0; steps < 200 && node.calls() < before + nth; steps++) await node.clock.advance(1);
      await changing;
      await node.restart();
      await node.until(`it is done, agent ended at call ${nth}`, () => {
        const { resources } = node.status("web") as { resources?: Resources };
        return resources?.limits?.["cpu"] === "300m" && conditions(node).length === 0;
      });
      for (const name of ["main", "strict"]) {
        assert.deepEqual(given(node, name), { quota: 30_000, memory: 64 });
        assert.equal(node.container("web", name).restartCount, 0);
      }
    }
  });

  test("resources that are added while there is no room are no promise, over a restart of the agent too", async () => {
    await using node = await start({
      handlers: [
        ({ spec }) =>
          spec.resources === undefined
            ? { type: "admitted" }
            : { type: "rejected", reason: "OutOfcpu", message: "there is no room" },
      ],
    });
    const containers = [container("main", { resources: { requests: { cpu: "50m" } } })];
    await running(node, podOf(1, { containers }));
    await node.want(podOf(2, { containers, resources: { requests: { cpu: "1" } } }));
    await node.restart();
    await node.advance(1_000);
    assert.deepEqual(conditions(node), ["PodResizePending Deferred there is no room"]);
  });

  test("with its gate off it is refused, and nothing is told of the pod as a whole", async () => {
    await using node = await start({ resizeSettings: { ofPods: false } });
    await running(node, podOf(1, { resources: amounts("200m", "128Mi") }));
    await node.want(podOf(2, { resources: amounts("300m", "128Mi") }));
    await node.advance(1_000);
    assert.deepEqual(conditions(node), [
      "PodResizePending Infeasible InPlacePodLevelResourcesVerticalScaling is disabled",
    ]);
    assert.deepEqual(given(node, "main"), { quota: 20_000, memory: 128 });
    assert.equal("resources" in node.status("web"), false);
  });

  test("what was given is on the disk in the kubelet's form", async () => {
    await using node = await start();
    await running(node, podOf(1, { resources: amounts("200m", "128Mi") }));
    await node.want(podOf(2, { resources: amounts("300m", "128Mi") }));
    await node.until("it is done", isDone(node));
    await node.advance(1_000);
    for (const file of ["allocated_pods_state", "actuated_pods_state"]) {
      const { data } = JSON.parse(readFileSync(join(node.rootDir, file), "utf8")) as { readonly data: string };
      const { entries } = JSON.parse(data) as { entries: Record<string, { PodLevelResources?: Resources }> };
      assert.equal(entries["web"]?.PodLevelResources?.limits?.["cpu"], "300m", file);
    }
  });
});

describe("init containers", () => {
  const init = (cpu: string, more: Partial<Container> = {}): Container =>
    container("init", { resources: { requests: { cpu }, limits: { cpu } }, ...more });

  test("one that runs is resized in place, sidecars beside it too", async () => {
    await using node = await start();
    node.runtime.behave("init", { type: "runs", steps: [{ do: "sleepForever" }], onTerm: "die" });
    const asking = (cpu: string, generation: number): IdentifiedPod =>
      podOf(generation, { initContainers: [{ ...init(cpu, { restartPolicy: "Always" }), name: "side" }, init(cpu)] });
    await node.want(asking("100m", 1));
    await node.until("they run", () => node.running().length === 2);
    await node.want(asking("300m", 2));
    await node.until("it is done", isDone(node));
    for (const name of ["side", "init"]) {
      assert.equal((given(node, name) as { quota: number }).quota, 30_000, name);
      assert.equal(node.container("web", name).restartCount, 0);
      assert.equal(node.container("web", name).resources?.limits?.["cpu"], "300m");
    }
  });

  test("one that has ended needs nothing, and starts with what it was promised since", async () => {
    await using node = await start();
    node.runtime.behave("init", exitsAfter(1_000, 1));
    await node.want(podOf(1, { initContainers: [init("100m")] }));
    await node.until("it waits", () => node.container("web", "init").state?.waiting?.reason === "CrashLoopBackOff");
    await node.want(podOf(2, { initContainers: [init("300m")] }));
    await node.until("it is done", isDone(node));
    const before = node.container("web", "init").restartCount;
    await node.until("it runs again", () => node.container("web", "init").restartCount > before);
    assert.equal((given(node, "init") as { quota: number }).quota, 30_000);
  });

  test("with the gate off they keep what they have", async () => {
    await using node = await start({ resizeSettings: { ofInitContainers: false } });
    node.runtime.behave("init", { type: "runs", steps: [{ do: "sleepForever" }], onTerm: "die" });
    await node.want(podOf(1, { initContainers: [init("100m")] }));
    await node.until("it runs", () => node.running().length === 1);
    await node.want(podOf(2, { initContainers: [init("300m")] }));
    await node.advance(1_000);
    assert.deepEqual(conditions(node), [
      "PodResizePending Infeasible InPlacePodVerticalScalingInitContainers is disabled",
    ]);
    assert.equal((given(node, "init") as { quota: number }).quota, 10_000);
  });
});
