// Agents that end while a container is made or started: the next one finds what is left. On virtual time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine, type TestEngineOptions } from "../../test/support/test-engine.ts";
import { type Behaviour, runsForever } from "../beside/hollow/index.ts";
import { CriError } from "../connections/cri/index.ts";
import type { Container, IdentifiedPod, PodSpec } from "../ground/model/index.ts";

const givenUp = (message: string): Behaviour => ({ type: "failsToStart", message });
const beforeItRan = givenUp("failed to create containerd task: failed to create shim task: context canceled: unknown");
const withItsShim = givenUp(
  "failed to create containerd task: failed to start shim: start failed: : signal: killed: unknown",
);
const asItRan = givenUp('failed to start containerd task "c1": context canceled: unknown');
const ownFault = givenUp(
  'failed to create containerd task: failed to create shim task: OCI runtime create failed: exec: "context canceled: unknown',
);

const asking = (cpu: string, generation: number, more: Partial<Container> = {}, spec: Partial<PodSpec> = {}) => {
  const resources = { requests: { cpu }, limits: { cpu } };
  const env = [{ name: "CPUS", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } } }];
  const containers = [{ name: "main", image: "busybox:1", resources, env, ...more }];
  return enginePod("web", { ...spec, containers }, { generation }) as IdentifiedPod;
};
const whenResized: Partial<Container> = {
  resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }],
};

/** A node whose runtime answers no start while it is told not to. */
async function start(options: TestEngineOptions = {}): Promise<{ node: TestEngine; starts: { hang: boolean } }> {
  const starts = { hang: false };
  const node = await TestEngine.start({
    source: "api",
    ...options,
    answers: (runtime) => ({
      ...runtime,
      startContainer: async (request, call) => {
        if (!starts.hang) return await runtime.startContainer(request, call);
        return await new Promise((_, reject) => {
          const cancelled = new CriError("Canceled", "startContainer", "Cancelled on client");
          call?.signal?.addEventListener("abort", () => reject(cancelled));
        });
      },
    }),
  });
  return { node, starts };
}

const made = (node: TestEngine): number => node.runtime.callCounts().get("createContainer") ?? 0;
const running = (node: TestEngine) => node.runtime.containers().find(({ life }) => life.step === "running");

for (const [what, left, restarts] of [
  ["before anything of it ran", beforeItRan, 0],
  ["together with its shim", withItsShim, 0],
  ["when it may have run for a moment", asItRan, 1],
  ["because of what it is", ownFault, 1],
] as const) {
  test(`a start that the runtime gave up ${what} is ${restarts === 0 ? "no" : "a"} restart`, async () => {
    const { node } = await start();
    await using _ = node;
    node.runtime.behave("main", left, runsForever());
    await node.want(asking("100m", 1));
    await node.restart();
    const waited = await node.until("it runs", () => node.running().length === 1);
    assert.equal(node.container("web", "main").restartCount, restarts);
    assert.ok(waited < 5_000, `it waited ${waited} ms`);
    assert.equal(made(node), 2);
    assert.equal(node.runtime.containers().length, 1 + restarts);
  });
}

test("a pod that runs once is not over because its agent ended when it was about to start", async () => {
  const { node } = await start();
  await using _ = node;
  node.runtime.behave("main", beforeItRan, runsForever());
  await node.want(asking("100m", 1, {}, { restartPolicy: "Never" }));
  await node.restart();
  await node.until("it runs", () => node.phase("web") === "Running");
  assert.equal(node.container("web", "main").restartCount, 0);
});

test("one that restarts for a resize has its one restart, and no crash back-off, though its start was given up", async () => {
  const { node } = await start();
  await using _ = node;
  await node.want(asking("100m", 1, whenResized));
  await node.until("it runs", () => node.running().length === 1);
  node.runtime.behave("main", beforeItRan, runsForever());
  await node.want(asking("200m", 2, whenResized));
  await node.restart();
  const waited = await node.until("it runs", () => node.running().length === 1);
  assert.equal(node.container("web", "main").restartCount, 1);
  assert.ok(waited < 5_000, `it waited ${waited} ms`);
  assert.ok(!node.events.some((event) => event.includes("BackOff")), node.events.join("\n"));
});

test("one that was made and not started is made anew when it is to have other resources, and that is no restart", async () => {
  const { node, starts } = await start();
  await using _ = node;
  starts.hang = true;
  await node.want(asking("100m", 1));
  await node.until("it is made", () => made(node) === 1);
  await node.want(asking("300m", 2));
  await node.until("it is promised more", () => node.events.some((event) => event.includes("ResizeStarted")));
  await node.stop();
  starts.hang = false;
  await node.restart();
  await node.until("it runs", () => node.running().length === 1);
  const { config, resources } = running(node) ?? {};
  assert.equal(resources?.cpuQuota, 30_000n);
  assert.equal(String(config?.envs.find(({ key }) => key === "CPUS")?.value), "300");
  assert.equal(node.container("web", "main").restartCount, 0);
  assert.equal(node.container("web", "main").resources?.limits?.["cpu"], "300m");
  assert.equal(node.runtime.containers().length, 1);
});

test("one that was made and not started is started as it is when nothing has changed", async () => {
  const { node, starts } = await start();
  await using _ = node;
  starts.hang = true;
  await node.want(asking("100m", 1));
  await node.until("it is made", () => made(node) === 1);
  await node.stop();
  starts.hang = false;
  await node.restart();
  await node.until("it runs", () => node.running().length === 1);
  assert.equal(made(node), 1);
  assert.equal(node.container("web", "main").restartCount, 0);
});
