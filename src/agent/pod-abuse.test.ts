// What a single pod can do to the agent by what it says and by how it ends, on virtual time.
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { exitsAfter, runsForever } from "../hollow/index.ts";
import type { IdentifiedPod, PodUid } from "../model/index.ts";

const container = { name: "main", image: "busybox:1" };

/** A node of a cluster that can have no image but one. */
async function start(): Promise<TestEngine> {
  const node = await TestEngine.start({ source: "api", runtime: { unknownImages: "absent" } });
  node.runtime.imageStore.publish({ name: "busybox:1" });
  return node;
}

test("a hook that fails with megabytes of output leaves a few kilobytes behind", async () => {
  await using node = await start();
  const stdout = "\0".repeat(8_000_000);
  node.runtime.onExec(() => ({ stdout, stderr: stdout, exitCode: 1 }));
  const lifecycle = { postStart: { exec: { command: ["sh", "-c", "x".repeat(500_000)] } } };
  await node.want(enginePod("web", { containers: [{ ...container, lifecycle }] }));
  await node.until("it has failed twice", () => node.container("web", "main").restartCount >= 2);
  await node.until("the failure shows", () => node.container("web", "main").state?.waiting?.message !== undefined);
  assert.ok(JSON.stringify(node.status("web")).length < 64_000);
  assert.ok(JSON.stringify(node.engine.ledger.read("web" as PodUid)).length < 64_000);
  assert.ok((await stat(join(node.rootDir, "pods", "web", "nodelet.json"))).size < 64_000);
  await node.drop("web");
  await node.until("it is gone", () => node.runtime.sandboxes().length === 0);
  assert.ok(JSON.stringify(node.events).length < 64_000);
});

const neverAgain = { restartPolicy: "Never" } as const;

/** The pod has come to rest: time alone brings a few calls at most. */
async function assertQuiet(node: TestEngine, forMs: number, mostCalls: number): Promise<void> {
  const before = node.calls();
  await node.advance(forMs);
  assert.ok(node.calls() - before <= mostCalls, `${node.calls() - before} calls in ${forMs} ms`);
}

function killSandboxes(node: TestEngine): void {
  for (const { id } of node.runtime.sandboxes()) node.runtime.killSandbox(id);
}

const endless: readonly {
  readonly name: string;
  readonly spec: Parameters<typeof enginePod>[1];
  readonly prepare: (node: TestEngine) => void;
  readonly break: (node: TestEngine) => void;
}[] = [
  {
    name: "its sandbox dies while an image is missing",
    spec: {
      ...neverAgain,
      initContainers: [{ name: "init", image: "busybox:1" }],
      containers: [{ name: "main", image: "absent:1" }],
    },
    prepare: (node) => node.runtime.behave("init", exitsAfter(10, 0)),
    break: killSandboxes,
  },
  {
    name: "its sandbox dies when one container has ended and the other never began",
    spec: { ...neverAgain, containers: [container, { name: "other", image: "absent:1" }] },
    prepare: (node) => node.runtime.behave("main", exitsAfter(10, 0)),
    break: killSandboxes,
  },
  {
    name: "its init container ends well, though something in it was killed for want of memory",
    spec: { ...neverAgain, initContainers: [{ name: "init", image: "busybox:1" }] },
    prepare: (node) => node.runtime.behave("init", runsForever()),
    break: (node) => node.runtime.exit("init", 0, "OOMKilled"),
  },
];

for (const { name, spec, prepare, break: breakIt } of endless) {
  test(`a pod that starts nothing any more costs nothing: ${name}`, async () => {
    await using node = await start();
    prepare(node);
    await node.want(enginePod("job", spec));
    await node.advance(5_000);
    breakIt(node);
    await assertQuiet(node, 1_000, 40);
    await assertQuiet(node, 600_000, 40);
  });
}

const waits: readonly { readonly name: string; readonly image: string; readonly reason: RegExp }[] = [
  { name: "crashes", image: "busybox:1", reason: /^CrashLoopBackOff$/ },
  { name: "has no image", image: "absent:1", reason: /^ErrImagePull$/ },
];

for (const { name, image, reason } of waits) {
  test(`a pod with a readiness gate that ${name}: the echo of its status changes nothing`, async () => {
    await using node = await start();
    node.runtime.behave("main", exitsAfter(10, 1));
    const pod = enginePod("web", {
      readinessGates: [{ conditionType: "example.com/gate" }],
      containers: [{ name: "main", image }],
    });
    let statuses = 0;
    // As an API server does: what is patched comes back a moment later, with the rest of the pod unchanged.
    node.engine.statuses.onChange((_, status) => {
      statuses++;
      node.clock.after(10, () => void node.want({ ...structuredClone(pod), status } as IdentifiedPod));
    });
    await node.want(pod);
    await node.until("it waits", () => reason.test(node.container("web", "main").state?.waiting?.reason ?? ""));
    await node.advance(30_000);
    const events = node.events.filter((event) => event.includes("BackOff")).length;
    assert.ok(statuses <= 20, `${statuses} statuses`);
    assert.ok(events <= 20, `${events} events`);
  });
}

test("a changed definition is tried at once, whatever the old one waits for", async () => {
  await using node = await start();
  await node.want(enginePod("web", { containers: [{ name: "main", image: "absent:1" }] }));
  await node.until("it waits", () => node.container("web", "main").state?.waiting?.reason === "ErrImagePull");
  await node.advance(120_000);
  await node.want(enginePod("web", { containers: [container] }));
  const tookMs = await node.until("it runs", () => node.phase("web") === "Running");
  assert.ok(tookMs < 1_000, `${tookMs} ms`);
});
