// Resizes that go wrong on the way, on virtual time over the simulated runtime.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { exitsAfter } from "../beside/hollow/index.ts";
import { CriError } from "../connections/cri/index.ts";
import type { Container, IdentifiedPod, PodCondition, PodSpec } from "../ground/model/index.ts";
import { PodCheckpointFiles } from "../pod/workers/pod-checkpoint.ts";

const mi = 1024 * 1024;
const both = (amounts: { readonly cpu?: string; readonly memory?: string }): NonNullable<Container["resources"]> => ({
  requests: { ...amounts },
  limits: { ...amounts },
});
const container = (name: string, resources: NonNullable<Container["resources"]>): Container => ({
  name,
  image: "busybox:1",
  resources,
});
const pod = (containers: readonly Container[], generation: number, more: Partial<PodSpec> = {}): IdentifiedPod =>
  enginePod("web", { ...more, containers }, { generation });
const conditions = (node: TestEngine): readonly PodCondition[] =>
  (node.status("web").conditions ?? []).filter(({ type }) => type.startsWith("PodResize"));
const resizeEvents = (node: TestEngine): readonly string[] =>
  node.events
    .filter((event) => event.includes("Resize"))
    .map((event) => `${event.split(" ")[1]} ${/"generation":(\d+)/.exec(event)?.[1]}`);

/** What the runtime has of the running container. */
function given(node: TestEngine, name: string): object {
  const found = node.runtime
    .containers()
    .find(({ config, life }) => config.metadata?.name === name && life.step === "running");
  const { cpuShares, cpuQuota, memoryLimitInBytes } = found?.resources ?? {};
  return { shares: Number(cpuShares), quota: Number(cpuQuota), memory: Number(memoryLimitInBytes) };
}

test("nobody is told that a resize is done while the pod's cgroup is still being lowered", async () => {
  await using node = await TestEngine.start({ source: "api" });
  await node.want(pod([container("main", both({ cpu: "500m" }))], 1));
  await node.until("it runs", () => node.phase("web") === "Running");
  Object.assign(node.podCgroups, {
    lower: () => new Promise<void>((resolve) => void node.clock.after(10_000, resolve)),
  });
  await node.want(pod([container("main", both({ cpu: "100m" }))], 2));
  await node.advance(8_000);
  assert.deepEqual(resizeEvents(node), ["ResizeStarted: 2"]);
  assert.equal(conditions(node)[0]?.type, "PodResizeInProgress");
  await node.until("it is done", () => conditions(node).length === 0);
  assert.deepEqual(resizeEvents(node), ["ResizeStarted: 2", "ResizeCompleted: 2"]);
  assert.deepEqual(node.container("web", "main").resources, both({ cpu: "100m" }));
});

test("a pod is deleted although the runtime hangs while its sandbox is told of a resize", async () => {
  await using node = await TestEngine.start({ source: "api" });
  await node.want(pod([container("main", both({ cpu: "500m" }))], 1));
  await node.until("it runs", () => node.phase("web") === "Running");
  node.runtime.faults.add({ operation: "updatePodSandboxResources", times: 1, effect: { type: "hang" } });
  await node.want(pod([container("main", both({ cpu: "100m" }))], 2));
  await node.advance(1_000);
  await node.drop("web");
  const tookMs = await node.until("it is gone", () => node.running().length === 0);
  assert.ok(tookMs < 40_000, `took ${tookMs} ms`);
});

test("a resize that is accepted while the end of another is being kept is said to be done, too", async (t) => {
  await using node = await TestEngine.start({ source: "api" });
  node.runtime.behave("dead", exitsAfter(1_000, 0));
  const asking = (cpu: string, generation: number): IdentifiedPod =>
    pod([container("dead", both({ cpu })), container("alive", both({ cpu: "100m" }))], generation, {
      restartPolicy: "Never",
    });
  await node.want(asking("100m", 1));
  await node.until("one has ended", () => node.container("web", "dead").state?.terminated !== undefined);
  const { save } = PodCheckpointFiles.prototype;
  let answers = (): void => {};
  const disk = new Promise<void>((resolve) => {
    answers = resolve;
  });
  const slow = async function (this: PodCheckpointFiles, ...what: Parameters<typeof save>): Promise<void> {
    await disk;
    await save.apply(this, what);
  };
  t.mock.method(PodCheckpointFiles.prototype, "save", slow);
  await node.want(asking("300m", 2));
  await node.want(asking("400m", 3));
  answers();
  await node.advance(120_000);
  const told = ["ResizeStarted: 2", "ResizeStarted: 3", "ResizeCompleted: 2", "ResizeCompleted: 3"];
  assert.deepEqual(resizeEvents(node), told);
});

test("what a runtime has done and called a failure is taken back when the pod asks for what it had", async () => {
  let fails = 0;
  await using node = await TestEngine.start({
    source: "api",
    answers: (runtime) => ({
      ...runtime,
      updateContainerResources: async (request, call) => {
        const answer = await runtime.updateContainerResources(request, call);
        if (fails-- <= 0) return answer;
        throw new CriError("DeadlineExceeded", "updateContainerResources", "context deadline exceeded");
      },
    }),
  });
  const [less, more] = [both({ cpu: "100m", memory: "64Mi" }), both({ cpu: "300m", memory: "128Mi" })];
  await node.want(pod([container("main", less)], 1));
  await node.until("it runs", () => node.phase("web") === "Running");
  fails = 1;
  await node.want(pod([container("main", more)], 2));
  await node.until("it is said", () => conditions(node)[0]?.reason === "Error");
  await node.want(pod([container("main", less)], 3));
  await node.advance(60_000);
  assert.deepEqual(given(node, "main"), { shares: 102, quota: 10_000, memory: 64 * mi });
  assert.deepEqual(node.container("web", "main").resources, less);
  assert.deepEqual(resizeEvents(node).at(-1), "ResizeCompleted: 3");
});

for (const { what, next } of [
  { what: "less", next: both({ cpu: "100m", memory: "96Mi" }) },
  { what: "as much memory as it was known to have", next: both({ cpu: "200m", memory: "64Mi" }) },
]) {
  test(`memory that a failed update has given, and that is in use, is not taken away by asking for ${what}`, async () => {
    let fails = 0;
    await using node = await TestEngine.start({
      source: "api",
      answers: (runtime) => ({
        ...runtime,
        updateContainerResources: async (request, call) => {
          const answer = await runtime.updateContainerResources(request, call);
          if (fails-- <= 0) return answer;
          throw new CriError("DeadlineExceeded", "updateContainerResources", "context deadline exceeded");
        },
      }),
    });
    const usage = { cpuMillicores: 1, memoryBytes: 10 * mi };
    node.runtime.behave("main", { type: "runs", steps: [{ do: "sleepForever" }], onTerm: "die", usage });
    await node.want(pod([container("main", both({ cpu: "100m", memory: "64Mi" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    for (const [index, memory] of ["72Mi", "128Mi"].entries()) {
      fails = 1;
      await node.want(pod([container("main", both({ cpu: "100m", memory }))], index + 2));
      await node.until("it is said", () => conditions(node)[0]?.observedGeneration === index + 2 && fails === 0);
    }
    usage.memoryBytes = 120 * mi;
    await node.want(pod([container("main", next)], 4));
    await node.advance(60_000);
    assert.match(conditions(node)[0]?.message ?? "", /below current usage/);
    assert.deepEqual(given(node, "main"), { shares: 102, quota: 10_000, memory: 128 * mi });
    usage.memoryBytes = 10 * mi;
    await node.until("it is done", () => conditions(node).length === 0);
    assert.deepEqual(node.container("web", "main").resources, next);
  });
}

describe("a container that ends well when it is killed for a resize is not taken for one that has done its work", () => {
  const asking = (cpu: string, generation: number): IdentifiedPod => {
    const resizePolicy = [{ resourceName: "cpu", restartPolicy: "RestartContainer" }];
    return pod([{ ...container("main", both({ cpu })), resizePolicy }], generation, { restartPolicy: "OnFailure" });
  };
  for (const { what, effect } of [
    { what: "its next instance can't be made at first", effect: { type: "error", code: "Internal", message: "no" } },
    { what: "the agent ends before its next instance is there", effect: { type: "hang" } },
  ] as const) {
    test(what, async () => {
      await using node = await TestEngine.start({ source: "api" });
      const onTerm = [{ do: "exit", code: 0 }] as const;
      node.runtime.behave("main", { type: "runs", steps: [{ do: "sleepForever" }], onTerm });
      await node.want(asking("100m", 1));
      await node.until("it runs", () => node.phase("web") === "Running");
      node.runtime.faults.add({ operation: "createContainer", times: 1, effect });
      await node.want(asking("200m", 2));
      await node.until("it was killed", () => node.running().length === 0);
      if (effect.type === "hang") await node.restart();
      await node.until("it runs again", () => node.running().length === 1);
      assert.equal(node.phase("web"), "Running");
      assert.deepEqual(node.container("web", "main").resources, both({ cpu: "200m" }));
      assert.equal(node.container("web", "main").restartCount, 1);
      node.runtime.exit("main", 0);
      await node.until("it has done its work", () => node.phase("web") === "Succeeded");
    });
  }

  test("it is not killed in the end, and ends well by itself", async () => {
    await using node = await TestEngine.start({ source: "api" });
    await node.want(asking("100m", 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    const effect = { type: "error", code: "Internal", message: "no" } as const;
    node.runtime.faults.add({ operation: "stopContainer", times: 1, effect });
    await node.want(asking("200m", 2));
    await node.want(asking("100m", 3));
    await node.advance(60_000);
    assert.deepEqual([node.running().length, node.container("web", "main").restartCount], [1, 0]);
    node.runtime.exit("main", 0);
    await node.until("it has done its work", () => node.phase("web") === "Succeeded");
  });
});
