import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isAlreadyExists, resources } from "../../src/connections/kube/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import { eventually, isReady } from "../support/agent.ts";
import { ApiCluster } from "../support/api-cluster.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { untilTold } from "../support/raw-runtime.ts";

let containerd: TestContainerd;
let cluster: ApiCluster;
before(async () => {
  containerd = await startContainerd();
  cluster = await ApiCluster.start(containerd);
});
after(async () => {
  await cluster[Symbol.asyncDispose]();
  await containerd[Symbol.asyncDispose]();
});

const main = (command: readonly string[] = untilTold) => [
  { name: "main", image: containerd.images.busybox, command: [...command] },
];

test("a pod of the API runs, shows its status there, and goes when it is deleted", async () => {
  await cluster.create("web", { containers: main() });
  const running = await cluster.until("web", "Running and ready", isReady);
  assert.match(running.status?.podIP ?? "", /^\d+\./);
  assert.equal(running.status?.containerStatuses?.[0]?.restartCount, 0);
  assert.match(running.status?.containerStatuses?.[0]?.containerID ?? "", /^containerd:\/\//);
  await cluster.delete("web");
  await cluster.untilGone("web");
});

test("events tell what happened", async () => {
  await cluster.create("told", { containers: main() });
  await cluster.until("told", "ready", isReady);
  const reasons = await eventually(
    async () => {
      const { items } = await cluster.admin.list(
        resources.events,
        { namespace: "default" },
        {},
        AbortSignal.timeout(5_000),
      );
      const found = items.filter(({ involvedObject }) => involvedObject.name === "told").map(({ reason }) => reason);
      return ["Pulled", "Created", "Started"].every((reason) => found.includes(reason)) ? found : undefined;
    },
    "events of the pod",
    20_000,
  );
  assert.ok(reasons.length >= 3);
  await cluster.delete("told");
  await cluster.untilGone("told");
});

test("a job's pod ends as Succeeded, stays to be seen, and goes when deleted", async () => {
  await cluster.create("job", { restartPolicy: "Never", containers: main(["sh", "-c", "exit 0"]) });
  const done = await cluster.until("job", "Succeeded", ({ status }) => status?.phase === "Succeeded");
  assert.equal(done.status?.containerStatuses?.[0]?.state?.terminated?.exitCode, 0);
  await cluster.delete("job");
  await cluster.untilGone("job");
});

test("a pod that asks for too much is rejected, and can be deleted", async () => {
  const containers = [{ ...main()[0], name: "main", resources: { requests: { cpu: "1000" } } }];
  await cluster.create("greedy", { containers });
  const rejected = await cluster.until("greedy", "Failed", ({ status }) => status?.phase === "Failed");
  assert.equal(rejected.status?.reason, "OutOfcpu");
  assert.match(rejected.status?.message ?? "", /^Pod was rejected: Node didn't have enough resource: cpu/);
  await cluster.delete("greedy");
  await cluster.untilGone("greedy");
});

test("a static pod has a mirror, which comes back when deleted while the pod runs on", async () => {
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "test-node" } };
  await cluster.admin.create(resources.nodes, {}, node, AbortSignal.timeout(5_000)).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
  await cluster.agent.apply("static", { containers: main() });
  const name = "static-test-node";
  const mirror = await cluster.until(name, "ready in the API", isReady);
  const id = mirror.status?.containerStatuses?.[0]?.containerID;
  await cluster.delete(name, 0);
  const again = await cluster.until(
    name,
    "back",
    (pod: Pod) => pod.metadata?.uid !== mirror.metadata?.uid && isReady(pod),
  );
  assert.equal(again.status?.containerStatuses?.[0]?.containerID, id);
  await using watched = await cluster.watch();
  await cluster.agent.remove("static");
  await cluster.untilGone(name);
  const end = watched.lastSeen(name)?.status;
  assert.equal(end?.containerStatuses?.[0]?.state?.terminated?.exitCode, 0, JSON.stringify(end));
  assert.equal(end?.conditions?.find(({ type }) => type === "Ready")?.status, "False");
});

test("with the API away for a while, pods start, crash, stop and are reported when it is back", async () => {
  await cluster.create("steady", { containers: main() });
  const steady = await cluster.until("steady", "ready", isReady);
  await cluster.create("crashing", { containers: main(["sh", "-c", "sleep 2; exit 3"]) });
  await cluster.until("crashing", "running", ({ status }) => status?.phase === "Running");
  await cluster.outage.begin();
  await cluster.create("late", { containers: main() });
  await cluster.delete("steady");
  await eventually(
    async () =>
      ((await cluster.agent.client.pods(AbortSignal.timeout(5_000))).find(
        ({ metadata }) => metadata?.name === "crashing",
      )?.status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
    "the container is restarted without the API",
    30_000,
  );
  const before = await cluster.pod("crashing");
  assert.equal(before?.status?.containerStatuses?.[0]?.restartCount, 0, "the API can't know yet");
  await cluster.outage.end();
  await cluster.until(
    "crashing",
    "restart reported",
    ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
  );
  await cluster.until("late", "ready", isReady);
  await cluster.untilGone("steady");
  assert.ok(steady);
  for (const name of ["late", "crashing"]) await cluster.delete(name, 1);
  for (const name of ["late", "crashing"]) await cluster.untilGone(name);
});
