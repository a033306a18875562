// Resizing running pods: more and less, of CPUs and memory, of requests and limits, of classes and policies. Some of it:
// `npm run prove:resize` goes through all of it. What counts is read from the kernel's files and from the pod's status,
// never from what the agent believes.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { resources } from "../../src/connections/kube/index.ts";
import type { PodSpec } from "../../src/ground/model/index.ts";
import { eventually, isReady } from "../support/agent.ts";
import { ApiCluster } from "../support/api-cluster.ts";
import type { PodWatch } from "../support/cluster-pods.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { kernelLimits } from "../support/resize-proof/kernel-limits.ts";
import { countDongles, policies, shapes, walk } from "../support/resize-proof/matrix.ts";
import { containerStatus, hasSettled, resizable, resize, resizeConditions } from "../support/resize-proof/resizing.ts";
import { same } from "../support/resize-proof/wishes.ts";
import { soon } from "../support/until.ts";

const featureGates = {
  InPlacePodLevelResourcesVerticalScaling: true,
  InPlacePodVerticalScalingInitContainers: true,
};

let containerd: TestContainerd;
let cluster: ApiCluster;
let watch: PodWatch;
before(async () => {
  containerd = await startContainerd();
  cluster = await ApiCluster.start(containerd, { featureGates });
  await countDongles(cluster, 10);
  watch = await cluster.watch();
});
after(async () => {
  await watch[Symbol.asyncDispose]();
  await cluster[Symbol.asyncDispose]();
  await containerd[Symbol.asyncDispose]();
});

const lean = ["guaranteed-three", "burstable", "burstable-extended", "sidecar"];

for (const policy of policies) {
  describe(`resizePolicy ${policy}`, { concurrency: true }, () => {
    for (const shape of shapes.filter(({ name }) => lean.includes(name))) {
      const steps = shape.steps.filter((_, index) => index % 4 === 0);
      test(shape.name, async () => {
        await walk({ cluster, watch, image: containerd.images.busybox }, { ...shape, steps }, policy);
      });
    }
  });
}

test("what has no room waits, is said to wait, and happens when a pod leaves", async () => {
  const node = await cluster.admin.get(resources.nodes, { name: "test-node" }, {}, soon());
  const cpus = Number(node.status?.allocatable?.["cpu"] ?? "0") * 1000;
  const asking = (cpu: number): Partial<PodSpec> => ({
    containers: [resizable(containerd.images.busybox, "main", same(cpu, 32), "NotRequired")],
  });
  await cluster.create("big", asking(cpus - 300));
  await cluster.create("waits", asking(100));
  for (const name of ["big", "waits"]) await cluster.until(name, "ready", isReady);
  await resize(cluster, "waits", { main: same(400, 32) });
  const waiting = await cluster.until("waits", "Deferred", (pod) =>
    resizeConditions(pod).includes("PodResizePending Deferred"),
  );
  assert.equal(containerStatus(waiting, "main")?.resources?.limits?.["cpu"], "100m");
  await cluster.delete("big");
  await cluster.until("waits", "resized", (found) => hasSettled(found, "main", same(400, 32)));
  const reasons = await eventually(
    async () => {
      const { items } = await cluster.admin.list(resources.events, { namespace: "default" }, {}, soon());
      const found = items.filter(({ involvedObject }) => involvedObject.name === "waits").map(({ reason }) => reason);
      return found.includes("ResizeCompleted") ? found : undefined;
    },
    "the event of its end",
    20_000,
  );
  for (const reason of ["ResizeDeferred", "ResizeStarted"]) assert.ok(reasons.includes(reason), reasons.join());
  await cluster.delete("waits");
  await cluster.untilGone("waits");
});

test("a pod with resources as a whole: its cgroup, its class, what its container is told, and a resize of it", async () => {
  const told = ["CPU", "MEMORY"].map((name) => ({
    name,
    valueFrom: {
      resourceFieldRef: { resource: `limits.${name.toLowerCase()}`, divisor: name === "CPU" ? "1m" : "1Mi" },
    },
  }));
  const container = { name: "main", image: containerd.images.busybox, env: told };
  await cluster.create("whole", {
    resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: { cpu: "300m", memory: "96Mi" } },
    containers: [
      {
        ...container,
        command: ["sh", "-c", 'echo "$CPU $MEMORY" > /dev/termination-log; trap "exit 0" TERM; sleep 1d & wait'],
      },
    ],
  });
  const { uid = "" } = (await cluster.until("whole", "ready", isReady)).metadata ?? {};
  assert.deepEqual(kernelLimits(uid), { shares: "102", quota: "30000", memory: String(96 << 20) });
  const grown = { requests: { cpu: "150m", memory: "64Mi" }, limits: { cpu: "200m", memory: "128Mi" } };
  await resize(cluster, "whole", {}, grown);
  const now = await cluster.until("whole", "resized", (pod) => {
    const { resources: has } = (pod.status ?? {}) as { readonly resources?: PodSpec["resources"] };
    return has?.limits?.["cpu"] === "200m" && has.limits["memory"] === "128Mi" && resizeConditions(pod).length === 0;
  });
  assert.equal(now.status?.qosClass, "Burstable");
  assert.deepEqual((now.status as { allocatedResources?: object }).allocatedResources, grown.requests);
  const limits = { quota: "20000", memory: String(128 << 20) };
  assert.deepEqual(kernelLimits(uid), { ...limits, shares: "153" });
  const { containerID = "", restartCount } = containerStatus(now, "main") ?? {};
  // It has no limits of its own, so that it has the pod's, and no request, for which its limit stands.
  assert.deepEqual(kernelLimits(uid, containerID.replace(/^.*:\/\//, "")), { ...limits, shares: "204" });
  assert.equal(restartCount, 0);
  await cluster.delete("whole");
  await using seen = await cluster.watch();
  await cluster.untilGone("whole");
  const ended = seen.lastSeen("whole")?.status?.containerStatuses?.[0]?.state?.terminated;
  if (ended !== undefined) assert.equal(ended.message?.trim(), "300 96");
});

test("an init container is resized while it runs", async () => {
  const image = containerd.images.busybox;
  const init = resizable(image, "init", same(100, 32), "NotRequired", {
    command: ["sh", "-c", "until [ -e /marks/go ]; do sleep 0.2; done"],
    volumeMounts: [{ name: "marks", mountPath: "/marks" }],
  });
  await cluster.create("begins", {
    initContainers: [init],
    containers: [resizable(image, "main", same(50, 16), "NotRequired")],
    volumes: [{ name: "marks", hostPath: { path: containerd.stateDir } }],
  });
  await cluster.until("begins", "init runs", (pod) => containerStatus(pod, "init")?.state?.running !== undefined);
  await resize(cluster, "begins", { init: same(250, 48) });
  const now = await cluster.until("begins", "resized", (pod) => hasSettled(pod, "init", same(250, 48)));
  const { uid = "" } = now.metadata ?? {};
  assert.deepEqual(kernelLimits(uid), { shares: "256", quota: "25000", memory: String(48 << 20) });
  assert.equal(containerStatus(now, "init")?.restartCount, 0);
  await cluster.delete("begins");
  await cluster.untilGone("begins");
});
