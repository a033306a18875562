// Resizing pods in place, on virtual time over the simulated runtime.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { enginePod, TestEngine, type TestEngineOptions } from "../../test/support/test-engine.ts";
import { exitsAfter } from "../beside/hollow/index.ts";
import { type Container, fnv1a32, type IdentifiedPod, type PodCondition, type PodSpec } from "../ground/model/index.ts";
import type { AdmissionHandler } from "../pod/registry/index.ts";

interface Amounts {
  readonly cpu?: string;
  readonly memory?: string;
}

const both = (requests: Amounts, limits: Amounts = requests): NonNullable<Container["resources"]> => ({
  requests: { ...requests },
  limits: { ...limits },
});
const container = (name: string, resources: Container["resources"], more: Partial<Container> = {}): Container => ({
  name,
  image: "busybox:1",
  ...(resources === undefined ? {} : { resources }),
  ...more,
});
const restartFor = (...names: readonly string[]): Partial<Container> => ({
  resizePolicy: names.map((resourceName) => ({ resourceName, restartPolicy: "RestartContainer" })),
});
const pod = (
  containers: readonly Container[],
  generation: number,
  { name = "web", ...more }: Partial<PodSpec> & { readonly name?: string } = {},
): IdentifiedPod => enginePod(name, { ...more, containers }, { generation });

const conditions = (node: TestEngine, uid = "web"): readonly PodCondition[] =>
  (node.status(uid).conditions ?? []).filter(({ type }) => type.startsWith("PodResize"));
/** Everything that a resize does, in order: what the runtime is told, and what becomes of the pod's cgroup. */
function watched(node: TestEngine): readonly string[] {
  return node.cgroupChanges;
}

/** A node whose runtime notes what it is told among the changes of cgroups. */
async function start(options: TestEngineOptions = {}): Promise<TestEngine> {
  const changes: { list: string[] | undefined } = { list: undefined };
  const node = await TestEngine.start({
    source: "api",
    ...options,
    answers: (runtime) => ({
      ...runtime,
      updateContainerResources: async (request, call) => {
        const { cpuQuota, cpuShares, memoryLimitInBytes } = request.linux ?? {};
        const name = node.runtime.containers().find(({ id }) => id === request.containerId)?.config.metadata?.name;
        changes.list?.push(`${name}: ${Number(memoryLimitInBytes) / mi} Mi, ${cpuQuota} us, ${cpuShares} shares`);
        return await runtime.updateContainerResources(request, call);
      },
    }),
  });
  changes.list = node.cgroupChanges;
  return node;
}

const mi = 1024 * 1024;

/** What the runtime has of the running container. */
function given(node: TestEngine, name: string): object {
  const found = node.runtime
    .containers()
    .find(({ config, life }) => config.metadata?.name === name && life.step === "running");
  const { cpuShares, cpuQuota, memoryLimitInBytes } = found?.resources ?? {};
  return { shares: Number(cpuShares), quota: Number(cpuQuota), memory: Number(memoryLimitInBytes) };
}

describe("in place", () => {
  test("more of everything: memory first, the pod's limit before the container's, nothing restarts", async () => {
    await using node = await start();
    await node.want(pod([container("main", both({ cpu: "100m", memory: "64Mi" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.want(pod([container("main", both({ cpu: "500m", memory: "128Mi" }))], 2));
    await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")));
    assert.deepEqual(watched(node), [
      "raise memory of web",
      "main: 128 Mi, 10000 us, 102 shares",
      "lower memory of web",
      "raise cpu of web",
      "main: 128 Mi, 50000 us, 512 shares",
      "lower cpu of web",
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

  test("of several containers, those that give something back go first", async () => {
    await using node = await start();
    const three = (a: string, b: string, c: string, generation: number): IdentifiedPod =>
      pod(
        [a, b, c].map((memory, index) => container(`c${index}`, both({ memory }))),
        generation,
      );
    await node.want(three("100Mi", "200Mi", "50Mi", 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.want(three("300Mi", "100Mi", "50Mi", 2));
    await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")));
    assert.deepEqual(
      watched(node).map((change) => change.replace(/,.*/, "")),
      ["raise memory of web", "c1: 100 Mi", "c0: 300 Mi", "lower memory of web"],
    );
  });

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

describe("when there is no room", () => {
  /** Two CPUs for all pods, by what they were promised. */
  const twoCpus: AdmissionHandler = (asking, others) => {
    const cpus = (of: IdentifiedPod): number =>
      of.spec.containers.reduce(
        (sum, { resources }) => sum + Number.parseInt(resources?.requests?.["cpu"] ?? "0", 10),
        0,
      );
    const used = others
      .filter(({ metadata }) => metadata.uid !== asking.metadata.uid)
      .reduce((sum, of) => sum + cpus(of), 0);
    if (used + cpus(asking) <= 2_000) return { type: "admitted" };
    return { type: "rejected", reason: "OutOfcpu", message: `${used} of 2000 are taken` };
  };
  const asking = (name: string, cpu: string, generation: number, priority = 0): IdentifiedPod =>
    pod([container(name, both({ cpu }))], generation, { name, priority });

  test("resizes wait, and happen by priority when a pod leaves; no newcomer is told of more than there is", async () => {
    await using node = await start({ handlers: [twoCpus] });
    await node.want(asking("a", "500m", 1), asking("b", "500m", 1, 10), asking("big", "1000m", 1));
    await node.until("they run", () => node.running().length === 3);
    await node.want(asking("a", "1000m", 2));
    await node.want(asking("b", "1500m", 2, 10));
    await node.advance(1_000);
    for (const name of ["a", "b"]) {
      const [pending] = conditions(node, name);
      assert.deepEqual([pending?.type, pending?.reason], ["PodResizePending", "Deferred"]);
      assert.equal(node.container(name, name).resources?.requests?.["cpu"], "500m");
    }
    await node.drop("big");
    await node.until(
      "the more important one has it",
      () => conditions(node, "b").length === 0 && node.container("b", "b").resources?.requests?.["cpu"] === "1500m",
    );
    assert.equal(conditions(node, "a")[0]?.reason, "Deferred", "there is no room for both");
    await node.want(asking("b", "500m", 3, 10));
    await node.until("the other has it, too", () => node.container("a", "a").resources?.requests?.["cpu"] === "1000m");
    assert.deepEqual(conditions(node, "a"), []);
  });

  test("a restart of the agent keeps what was promised, and goes on waiting", async () => {
    await using node = await start({ handlers: [twoCpus] });
    // It is the first that the next life of the agent hears of: a place that looks free then is not.
    await node.want(asking("b", "500m", 1), asking("a", "1500m", 1));
    await node.until("they run", () => node.running().length === 2);
    await node.want(asking("b", "1000m", 2));
    await node.advance(1_000);
    node.intend({ ...asking("b", "1000m", 2), status: node.status("b") });
    await node.restart();
    await node.until("it is looked at", () => conditions(node, "b")[0]?.reason === "Deferred");
    await node.advance(1_000);
    assert.equal(conditions(node, "b")[0]?.reason, "Deferred");
    assert.equal(node.events.filter((event) => event.startsWith("b ResizeDeferred")).length, 1, "users know already");
    assert.equal(node.running().length, 2);
    assert.equal(node.container("b", "b").resources?.requests?.["cpu"], "500m");
    await node.drop("a");
    await node.until("it has it", () => node.container("b", "b").resources?.requests?.["cpu"] === "1000m");
    assert.equal(node.container("b", "b").restartCount, 0);
  });
});

test("a resize that is accepted while its pod is taken over is said to be done when it is, and once", async () => {
  let isFull = true;
  await using node = await start({
    handlers: [
      ({ spec }) =>
        isFull && spec.containers[0]?.resources?.requests?.["cpu"] === "900m"
          ? { type: "rejected", reason: "OutOfcpu", message: "there is no room" }
          : { type: "admitted" },
    ],
  });
  await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
  await node.until("it runs", () => node.phase("web") === "Running");
  await node.want(pod([container("main", both({ cpu: "900m" }))], 2));
  await node.advance(1_000);
  assert.equal(conditions(node)[0]?.reason, "Deferred");
  isFull = false;
  await node.restart();
  await node.until("it has it", () => node.container("web", "main").resources?.limits?.["cpu"] === "900m");
  await node.advance(10_000);
  const told = node.events.filter((event) => event.startsWith("web ResizeCompleted"));
  assert.equal(told.length, 1, told.join("\n"));
  assert.match(told[0] ?? "", /"cpu":"900m"/);
});

describe("whatever happens meanwhile", () => {
  test("memory that is in use is not taken away: it is said, and tried again", async () => {
    await using node = await start();
    const usage = { cpuMillicores: 1, memoryBytes: 100 * mi };
    node.runtime.behave("main", { type: "runs", steps: [{ do: "sleepForever" }], onTerm: "die", usage });
    await node.want(pod([container("main", both({ memory: "200Mi" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.want(pod([container("main", both({ memory: "64Mi" }))], 2));
    await node.until("it is said", () => conditions(node)[0]?.reason === "Error");
    const [inProgress] = conditions(node);
    assert.equal(inProgress?.type, "PodResizeInProgress");
    assert.equal(
      inProgress?.message,
      `cannot decrease memory limits: attempting to set container "main" memory limit (${64 * mi}) below current usage (${100 * mi})`,
    );
    assert.equal(node.container("web", "main").resources?.limits?.["memory"], "200Mi");
    await node.want(pod([container("main", both({ memory: "128Mi" }))], 3));
    await node.until("it is done", () => node.container("web", "main").resources?.limits?.["memory"] === "128Mi");
    assert.deepEqual(conditions(node), []);
  });

  test("memory that is given back later is taken away then, without anybody asking again", async () => {
    await using node = await start();
    const usage = { cpuMillicores: 1, memoryBytes: 100 * mi };
    node.runtime.behave("main", { type: "runs", steps: [{ do: "sleepForever" }], onTerm: "die", usage });
    await node.want(pod([container("main", both({ memory: "200Mi" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.want(pod([container("main", both({ memory: "64Mi" }))], 2));
    await node.until("it is said", () => conditions(node)[0]?.reason === "Error");
    usage.memoryBytes = 10 * mi;
    await node.until("it is done", () => node.container("web", "main").resources?.limits?.["memory"] === "64Mi");
    await node.until("nothing is under way", () => conditions(node).length === 0);
    assert.equal(node.container("web", "main").restartCount, 0);
  });

  test("a container in back-off starts with what it was promised meanwhile", async () => {
    await using node = await start();
    node.runtime.behave("main", exitsAfter(1_000, 1));
    await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
    await node.until("it waits", () => node.container("web", "main").state?.waiting?.reason === "CrashLoopBackOff");
    const before = node.container("web", "main").restartCount;
    await node.want(pod([container("main", both({ cpu: "300m" }))], 2));
    await node.until("it runs again", () => node.container("web", "main").restartCount === before + 1);
    assert.deepEqual(given(node, "main"), { shares: 307, quota: 30_000, memory: 0 });
    assert.deepEqual(watched(node), [], "nothing ran that could be changed");
    assert.ok(node.events.some((event) => event.startsWith("web ResizeCompleted")));
  });

  test("a runtime that refuses is asked again, and the pod says why", async () => {
    await using node = await start();
    await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    node.runtime.faults.add({
      operation: "updateContainerResources",
      times: 2,
      effect: { type: "error", code: "Internal", message: "not today" },
    });
    await node.want(pod([container("main", both({ cpu: "300m" }))], 2));
    await node.until("it is said", () => conditions(node)[0]?.reason === "Error");
    assert.match(conditions(node)[0]?.message ?? "", /not today/);
    await node.until("it is done", () => conditions(node).length === 0);
    const told = node.events.filter((event) => event.includes("Resize")).map((event) => event.split(" ")[1]);
    assert.deepEqual(told, ["ResizeStarted:", "ResizeError:", "ResizeCompleted:"]);
    assert.deepEqual(node.container("web", "main").resources, both({ cpu: "300m" }));
    assert.equal(node.container("web", "main").restartCount, 0);
  });

  test("an agent that is ended at any call of a resize brings it to its end, and nothing restarts", async () => {
    for (let nth = 1; nth <= 10; nth++) {
      await using node = await start();
      const asking = (cpu: string, memory: string, generation: number): IdentifiedPod =>
        pod(
          [container("a", both({ cpu, memory })), container("b", both({ cpu: memory.replace("Mi", "m"), memory }))],
          generation,
        );
      await node.want(asking("100m", "64Mi", 1));
      await node.until("it runs", () => node.phase("web") === "Running");
      const before = node.calls();
      const changing = node.want(asking("700m", "128Mi", 2));
      for (let steps = 0; steps < 200 && node.calls() < before + nth; steps++) await node.clock.advance(1);
      await changing;
      await node.restart();
      await node.until(`it is done, agent ended at call ${nth}`, () => {
        const { resources } = node.container("web", "a");
        return (
          resources?.limits?.["cpu"] === "700m" &&
          resources.limits["memory"] === "128Mi" &&
          conditions(node).length === 0
        );
      });
      assert.deepEqual(given(node, "a"), { shares: 716, quota: 70_000, memory: 128 * mi });
      assert.deepEqual(given(node, "b"), { shares: 131, quota: 12_800, memory: 128 * mi });
      assert.equal(node.container("web", "a").restartCount + node.container("web", "b").restartCount, 0);
    }
  });

  test("files that are damaged are set aside; what runs goes on with what it has", async () => {
    await using node = await start();
    await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.stop();
    const file = join(node.rootDir, "allocated_pods_state");
    writeFileSync(file, readFileSync(file, "utf8").replace("100m", "900m"));
    await node.restart();
    await node.until("it is looked at", () => node.phase("web") === "Running");
    await node.advance(10_000);
    assert.deepEqual(given(node, "main"), { shares: 102, quota: 10_000, memory: 0 });
    assert.equal(node.container("web", "main").restartCount, 0);
    assert.match(readFileSync(`${file}.broken`, "utf8"), /900m/);
  });
});

describe("when the promise can't be saved", () => {
  for (const policy of [{}, restartFor("cpu")]) {
    test(`nothing is given, it is said, and all else goes on: ${JSON.stringify(policy)}`, async () => {
      await using node = await start();
      const asking = (cpu: string, generation: number): IdentifiedPod =>
        pod([container("main", both({ cpu }), policy), container("ends", both({ cpu: "50m" }))], generation);
      node.runtime.behave("ends", exitsAfter(60_000, 1));
      await node.want(asking("100m", 1));
      await node.until("it runs", () => node.running().length === 2);
      const file = join(node.rootDir, "allocated_pods_state");
      // A file can't take the place of a directory with something in it.
      rmSync(file);
      mkdirSync(join(file, "in the way"), { recursive: true });
      await node.want(asking("300m", 2));
      await node.until("it is said", () => conditions(node)[0]?.reason === "Error");
      assert.equal(conditions(node)[0]?.type, "PodResizeInProgress");
      assert.deepEqual(given(node, "main"), { shares: 102, quota: 10_000, memory: 0 });
      await node.until("what ended has started again", () => node.container("web", "ends").restartCount === 1);
      assert.equal(node.container("web", "main").restartCount, 0);
      rmSync(file, { recursive: true });
      await node.until("it is done", () => conditions(node).length === 0);
      assert.deepEqual(given(node, "main"), { shares: 307, quota: 30_000, memory: 0 });
      assert.equal(node.container("web", "main").restartCount, "resizePolicy" in policy ? 1 : 0);
    });
  }
});

test("files that another agent wrote with amounts that are no texts do not stop this one", async () => {
  await using node = await start();
  const resources = both({ cpu: "100m", memory: "64Mi" });
  await node.want(pod([container("main", resources)], 1), pod([container("main", resources)], 1, { name: "other" }));
  await node.until("they run", () => node.running().length === 2);
  await node.stop();
  for (const spoilt of [5, null, true, ["1"], { a: "1" }, "1e999999999", "9".repeat(5_000)]) {
    for (const name of ["allocated_pods_state", "actuated_pods_state"]) {
      const entry = { ContainerResources: { main: { requests: { cpu: spoilt }, limits: { memory: spoilt } } } };
      const right = { ContainerResources: { main: resources } };
      const data = JSON.stringify({ entries: { web: entry, other: right } });
      writeFileSync(join(node.rootDir, name), JSON.stringify({ data, checksum: fnv1a32(`(string)${data}`) }));
    }
    await node.restart();
    await node.until("they are looked at", () => ["web", "other"].every((uid) => node.phase(uid) === "Running"));
    await node.advance(60_000);
    assert.equal(node.container("other", "main").restartCount, 0, String(spoilt));
    assert.equal(node.container("web", "main").restartCount, 0, String(spoilt));
    assert.deepEqual(given(node, "main"), { shares: 102, quota: 10_000, memory: 64 * mi });
    await node.stop();
  }
});

test("what was promised to pods that went while no agent was there is forgotten", async () => {
  await using node = await start();
  await node.want(
    pod([container("main", both({ cpu: "100m" }))], 1),
    pod([container("gone", both({ cpu: "100m" }))], 1, { name: "gone" }),
  );
  await node.until("they run", () => node.running().length === 2);
  node.forget("gone");
  await node.restart();
  await node.until("it is gone", () => node.running().length === 1);
  await node.advance(1_000);
  for (const file of ["allocated_pods_state", "actuated_pods_state"]) {
    const { data } = JSON.parse(readFileSync(join(node.rootDir, file), "utf8")) as { readonly data: string };
    assert.deepEqual(Object.keys((JSON.parse(data) as { readonly entries: object }).entries), ["web"], file);
  }
});

describe("whatever is asked for", () => {
  const allocatable = () =>
    new Map([
      ["cpu", 4_000_000_000n],
      ["memory", 8_000_000_000n * 1_000_000_000n],
    ]);
  for (const { what, asked, becomes } of [
    { what: "less than the kernel can count", asked: both({ cpu: "1n", memory: "16Mi" }), becomes: [2, 1_000, 16] },
    {
      what: "limits beyond all numbers",
      asked: both({ cpu: "100m", memory: "64Mi" }, { cpu: "1e9", memory: "1e30" }),
      becomes: [102, 100_000_000_000_000, 2 ** 63 / mi],
    },
    { what: "requests beyond all numbers", asked: both({ cpu: "1e30", memory: "64Mi" }), becomes: "Infeasible" },
    { what: "memory beyond all numbers", asked: both({ cpu: "100m", memory: "9E" }), becomes: "Infeasible" },
    { what: "what is no number", asked: both({ cpu: "NaN", memory: "64Mi" }), becomes: [102, 10_000, 64] },
    {
      what: "no limit any more, which no runtime can do",
      asked: both({ cpu: "0", memory: "0" }),
      becomes: [2, 10_000, 64],
    },
  ] as const) {
    test(what, async () => {
      await using node = await start({ resizeSettings: { allocatable } });
      await node.want(
        pod([container("main", both({ cpu: "100m", memory: "64Mi" }))], 1),
        pod([container("other", both({ cpu: "100m" }))], 1, { name: "other" }),
      );
      await node.until("they run", () => node.running().length === 2);
      await node.want(pod([container("main", asked)], 2));
      await node.advance(5_000);
      if (becomes === "Infeasible") assert.equal(conditions(node)[0]?.reason, becomes);
      else {
        const [shares, quota, memory] = becomes;
        assert.deepEqual(given(node, "main"), { shares, quota, memory: memory * mi });
      }
      await node.want(pod([container("other", both({ cpu: "200m" }))], 2, { name: "other" }));
      await node.until("others are resized as ever", () =>
        node.events.some((event) => event.startsWith("other ResizeCompleted")),
      );
      await node.want(pod([container("main", both({ cpu: "300m", memory: "32Mi" }))], 3));
      await node.until("it is itself again", () => node.container("web", "main").resources?.limits?.["cpu"] === "300m");
      assert.deepEqual(given(node, "main"), { shares: 307, quota: 30_000, memory: 32 * mi });
      assert.equal(node.container("web", "main").restartCount, 0);
    });
  }

  for (const policy of [{}, restartFor("cpu", "memory")]) {
    test(`a thousand changes at once, ${JSON.stringify(policy)}`, async () => {
      await using node = await start();
      const asking = (index: number): IdentifiedPod =>
        pod([container("main", both({ cpu: `${100 + (index % 2) * 100}m` }), policy)], index + 1);
      await node.want(asking(0));
      await node.until("it runs", () => node.phase("web") === "Running");
      const before = node.calls();
      for (let index = 1; index <= 1_000; index++) {
        node.intend(asking(index));
        if (index % 20 === 0) await node.want(asking(index));
      }
      await node.want(asking(1_001));
      await node.until("it has the last of them", () => {
        const { resources, state } = node.container("web", "main");
        return state?.running !== undefined && resources?.limits?.["cpu"] === "200m" && conditions(node).length === 0;
      });
      assert.deepEqual(given(node, "main"), { shares: 204, quota: 20_000, memory: 0 });
      const { restartCount } = node.container("web", "main");
      assert.ok("resizePolicy" in policy ? restartCount <= 51 : restartCount === 0, `${restartCount} restarts`);
      assert.ok(node.calls() - before < 2_000, `${node.calls() - before} calls`);
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
