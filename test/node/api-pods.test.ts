import assert from "node:assert/strict";
import { test } from "node:test";
import { isAlreadyExists, resources } from "../../src/connections/kube/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import { answerMs, eventually, isReady } from "../support/agent.ts";
import { clusterForTests } from "../support/cluster-for-tests.ts";
import { untilTold } from "../support/raw-runtime.ts";

const here = clusterForTests();

const main = (command: readonly string[] = untilTold) => [
  { name: "main", image: here.containerd.images.busybox, command: [...command] },
];

test("a pod of the API runs, shows its status there, and goes when it is deleted", async () => {
  await here.cluster.create("web", { containers: main() });
  const running = await here.cluster.until("web", "Running and ready", isReady);
  assert.match(running.status?.podIP ?? "", /^\d+\./);
  assert.equal(running.status?.containerStatuses?.[0]?.restartCount, 0);
  assert.match(running.status?.containerStatuses?.[0]?.containerID ?? "", /^containerd:\/\//);
  await here.cluster.delete("web");
  await here.cluster.untilGone("web");
});

test("events tell what happened", async () => {
  await here.cluster.create("told", { containers: main() });
  await here.cluster.until("told", "ready", isReady);
  const reasons = await eventually(
    async () => {
      const { items } = await here.cluster.admin.list(
        resources.events,
        { namespace: "default" },
        {},
        AbortSignal.timeout(answerMs),
      );
      const found = items.filter(({ involvedObject }) => involvedObject.name === "told").map(({ reason }) => reason);
      return ["Pulled", "Created", "Started"].every((reason) => found.includes(reason)) ? found : undefined;
    },
    "events of the pod",
    60_000,
  );
  assert.ok(reasons.length >= 3);
  await here.cluster.delete("told");
  await here.cluster.untilGone("told");
});

test("a job's pod ends as Succeeded, stays to be seen, and goes when deleted", async () => {
  await here.cluster.create("job", { restartPolicy: "Never", containers: main(["sh", "-c", "exit 0"]) });
  const done = await here.cluster.until("job", "Succeeded", ({ status }) => status?.phase === "Succeeded");
  assert.equal(done.status?.containerStatuses?.[0]?.state?.terminated?.exitCode, 0);
  await here.cluster.delete("job");
  await here.cluster.untilGone("job");
});

test("a pod that asks for too much is rejected, and can be deleted", async () => {
  const containers = [{ ...main()[0], name: "main", resources: { requests: { cpu: "1000" } } }];
  await here.cluster.create("greedy", { containers });
  const rejected = await here.cluster.until("greedy", "Failed", ({ status }) => status?.phase === "Failed");
  assert.equal(rejected.status?.reason, "OutOfcpu");
  assert.match(rejected.status?.message ?? "", /^Pod was rejected: Node didn't have enough resource: cpu/);
  await here.cluster.delete("greedy");
  await here.cluster.untilGone("greedy");
});

test("a static pod has a mirror, which comes back when deleted while the pod runs on", async () => {
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "test-node" } };
  await here.cluster.admin.create(resources.nodes, {}, node, AbortSignal.timeout(answerMs)).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
  await here.cluster.agent.apply("static", { containers: main() });
  const name = "static-test-node";
  const mirror = await here.cluster.until(name, "ready in the API", isReady);
  const id = mirror.status?.containerStatuses?.[0]?.containerID;
  await here.cluster.delete(name, 0);
  const again = await here.cluster.until(
    name,
    "back",
    (pod: Pod) => pod.metadata?.uid !== mirror.metadata?.uid && isReady(pod),
  );
  assert.equal(again.status?.containerStatuses?.[0]?.containerID, id);
  await using watched = await here.cluster.watch();
  await here.cluster.agent.remove("static");
  await here.cluster.untilGone(name);
  const end = watched.lastSeen(name)?.status;
  assert.equal(end?.containerStatuses?.[0]?.state?.terminated?.exitCode, 0, JSON.stringify(end));
  assert.equal(end?.conditions?.find(({ type }) => type === "Ready")?.status, "False");
});

test("with the API away for a while, pods start, crash, stop and are reported when it is back", async () => {
  await here.cluster.create("steady", { containers: main() });
  const steady = await here.cluster.until("steady", "ready", isReady);
  await here.cluster.create("crashing", { containers: main(["sh", "-c", "sleep 2; exit 3"]) });
  await here.cluster.until("crashing", "running", ({ status }) => status?.phase === "Running");
  await here.cluster.outage.begin();
  await here.cluster.create("late", { containers: main() });
  await here.cluster.delete("steady");
  await eventually(
    async () =>
      ((await here.cluster.agent.client.pods(AbortSignal.timeout(answerMs))).find(
        ({ metadata }) => metadata?.name === "crashing",
      )?.status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
    "the container is restarted without the API",
    30_000,
  );
  const before = await here.cluster.pod("crashing");
  assert.equal(before?.status?.containerStatuses?.[0]?.restartCount, 0, "the API can't know yet");
  await here.cluster.outage.end();
  await here.cluster.until(
    "crashing",
    "restart reported",
    ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
  );
  await here.cluster.until("late", "ready", isReady);
  await here.cluster.untilGone("steady");
  assert.ok(steady);
  for (const name of ["late", "crashing"]) await here.cluster.delete(name, 1);
  for (const name of ["late", "crashing"]) await here.cluster.untilGone(name);
});
