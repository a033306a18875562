// Resizing running pods: every mix of more and less, of CPUs and memory, of requests and limits, of classes and policies.
// What counts is read from the kernel's files and from the pod's status, never from what the agent believes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { resources } from "../../src/connections/kube/index.ts";
import type { Container, Pod, PodSpec } from "../../src/ground/model/index.ts";
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

/** Milli-CPUs and mebibytes. */
interface Amounts {
  readonly cpu: number;
  readonly memory: number;
}

interface Wish {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

const same = (cpu: number, memory: number): Wish => ({ requests: { cpu, memory }, limits: { cpu, memory } });
const quantities = ({ cpu, memory }: Amounts) => ({ cpu: `${cpu}m`, memory: `${memory}Mi` });
const asResources = ({ requests, limits }: Wish) => ({ requests: quantities(requests), limits: quantities(limits) });

/**
 * One after the other, each from what the one before left: more and less of one, of the other, of both, and crosswise.
 * No step comes twice: a container that restarts with what it once had is in its back-off.
 */
const guaranteedSteps: readonly Wish[] = [
  same(200, 64),
  same(100, 64),
  same(100, 96),
  same(100, 48),
  same(210, 97),
  same(110, 49),
  same(220, 40),
  same(120, 65),
];
const burstableSteps: readonly Wish[] = [
  { requests: { cpu: 150, memory: 32 }, limits: { cpu: 200, memory: 64 } },
  { requests: { cpu: 50, memory: 32 }, limits: { cpu: 200, memory: 64 } },
  { requests: { cpu: 50, memory: 48 }, limits: { cpu: 200, memory: 64 } },
  { requests: { cpu: 50, memory: 16 }, limits: { cpu: 200, memory: 64 } },
  { requests: { cpu: 50, memory: 16 }, limits: { cpu: 400, memory: 64 } },
  { requests: { cpu: 50, memory: 16 }, limits: { cpu: 100, memory: 64 } },
  { requests: { cpu: 50, memory: 16 }, limits: { cpu: 100, memory: 128 } },
  { requests: { cpu: 50, memory: 16 }, limits: { cpu: 100, memory: 48 } },
  { requests: { cpu: 100, memory: 32 }, limits: { cpu: 300, memory: 96 } },
  { requests: { cpu: 50, memory: 40 }, limits: { cpu: 400, memory: 64 } },
];

interface Shape {
  readonly name: string;
  readonly steps: readonly Wish[];
  readonly containers: readonly string[];
  readonly sidecar?: string;
}

const shapes: readonly Shape[] = [
  { name: "guaranteed", steps: guaranteedSteps, containers: ["main"] },
  { name: "guaranteed-three", steps: guaranteedSteps, containers: ["main", "two", "three"] },
  { name: "burstable", steps: burstableSteps, containers: ["main"] },
  { name: "burstable-three", steps: burstableSteps, containers: ["main", "two", "three"] },
  { name: "sidecar", steps: burstableSteps, containers: ["main"], sidecar: "side" },
];

for (const policy of ["NotRequired", "RestartContainer"] as const) {
  describe(`resizePolicy ${policy}`, { concurrency: true }, () => {
    for (const shape of shapes) test(shape.name, () => walk(shape, policy));
  });
}

/** The first container (or the sidecar) goes through all steps; what the others have stays what it is. */
async function walk({ name, steps, containers, sidecar }: Shape, policy: string): Promise<void> {
  const pod = `${name}-${policy.toLowerCase()}`;
  const resized = sidecar ?? containers[0] ?? "";
  const [first = same(100, 64), ...rest] = steps;
  await cluster.create(pod, specOf(containers, sidecar, first, resized, policy));
  await cluster.until(pod, "ready", isReady);
  let restarts = 0;
  let before = first;
  for (const wish of rest) {
    const what = `${JSON.stringify(before)} to ${JSON.stringify(wish)}`;
    await resize(pod, resized, wish);
    if (policy === "RestartContainer") restarts++;
    const shown = await cluster.until(pod, what, (found) => hasSettled(found, resized, wish, restarts));
    const { uid = "" } = shown.metadata ?? {};
    const status = statusOf(shown, resized);
    assert.equal(status?.restartCount, restarts, what);
    const id = status?.containerID?.replace(/^.*:\/\//, "") ?? "";
    assert.deepEqual(kernelsOf(uid, id), limitsOf(wish), what);
    const others = [...containers, ...(sidecar === undefined ? [] : [sidecar])].filter((other) => other !== resized);
    for (const other of others) assert.equal(statusOf(shown, other)?.restartCount, 0, `${other}: ${what}`);
    assert.deepEqual(kernelsOf(uid), limitsOf(sum([wish, ...others.map(() => other)])), `the pod: ${what}`);
    before = wish;
  }
  await cluster.delete(pod);
  await cluster.untilGone(pod);
}

/** What containers have that are not resized. */
const other: Wish = same(100, 32);

function specOf(
  containers: readonly string[],
  sidecar: string | undefined,
  first: Wish,
  resized: string,
  policy: string,
): Partial<PodSpec> {
  const made = (name: string, more: Partial<Container> = {}): Container => ({
    name,
    image: containerd.images.busybox,
    command: [...untilTold],
    resources: asResources(name === resized ? first : other),
    resizePolicy: ["cpu", "memory"].map((resourceName) => ({ resourceName, restartPolicy: policy })),
    ...more,
  });
  return {
    ...(sidecar === undefined ? {} : { initContainers: [made(sidecar, { restartPolicy: "Always" })] }),
    containers: containers.map((name) => made(name)),
    terminationGracePeriodSeconds: 1,
  };
}

async function resize(pod: string, container: string, wish: Wish): Promise<void> {
  const { initContainers = [] } = (await cluster.pod(pod))?.spec ?? {};
  const list = initContainers.some(({ name }) => name === container) ? "initContainers" : "containers";
  const body = { spec: { [list]: [{ name: container, resources: asResources(wish) }] } };
  const ref = { namespace: "default", name: pod, subresource: "resize" };
  await cluster.admin.patch(resources.pods, ref, { type: "strategic", body }, AbortSignal.timeout(10_000));
}

function statusOf({ status }: Pod, container: string) {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return all.find(({ name }) => name === container);
}

/** The wish is shown as fulfilled, and nothing is said to be under way. */
function hasSettled(pod: Pod, container: string, wish: Wish, restarts: number): boolean {
  const found = statusOf(pod, container);
  const wanted = asResources(wish);
  const isShown =
    found?.state?.running !== undefined &&
    found.restartCount >= restarts &&
    JSON.stringify(sorted(found.resources)) === JSON.stringify(sorted(wanted)) &&
    JSON.stringify(sorted(found.allocatedResources)) === JSON.stringify(sorted(wanted.requests));
  return isShown && !(pod.status?.conditions ?? []).some(({ type }) => type.startsWith("PodResize"));
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}

function sum(wishes: readonly Wish[]): Wish {
  const add = (list: "requests" | "limits"): Amounts => ({
    cpu: wishes.reduce((total, wish) => total + wish[list].cpu, 0),
    memory: wishes.reduce((total, wish) => total + wish[list].memory, 0),
  });
  return { requests: add("requests"), limits: add("limits") };
}

/** As the files of cgroup v1 say it. */
function limitsOf({ requests, limits }: Wish): object {
  return {
    shares: String(Math.floor((requests.cpu * 1024) / 1000)),
    quota: String(limits.cpu * 100),
    memory: String(limits.memory * 1024 * 1024),
  };
}

/** What the kernel has for a container, or for its pod. */
function kernelsOf(uid: string, container = ""): object {
  const read = (controller: string, file: string): string => {
    const root = `/sys/fs/cgroup/${controller}`;
    // What vanishes while it looks is an error for find, and none for us.
    const { stdout } = spawnSync("find", [root, "-type", "d", "-name", `pod${uid}`], { encoding: "utf8" });
    return readFileSync(join(stdout.trim(), container, file), "utf8").trim();
  };
  return {
    shares: read("cpu", "cpu.shares"),
    quota: read("cpu", "cpu.cfs_quota_us"),
    memory: read("memory", "memory.limit_in_bytes"),
  };
}

test("what has no room waits, is said to wait, and happens when a pod leaves", async () => {
  const node = await cluster.admin.get(resources.nodes, { name: "test-node" }, {}, AbortSignal.timeout(10_000));
  const cpus = Number(node.status?.allocatable?.["cpu"] ?? "0") * 1000;
  const asking = (cpu: number): Partial<PodSpec> => specOf(["main"], undefined, same(cpu, 32), "main", "NotRequired");
  await cluster.create("big", asking(cpus - 300));
  await cluster.create("waits", asking(100));
  for (const name of ["big", "waits"]) await cluster.until(name, "ready", isReady);
  await resize("waits", "main", same(400, 32));
  const waiting = await cluster.until("waits", "Deferred", ({ status }) =>
    (status?.conditions ?? []).some(({ type, reason }) => type === "PodResizePending" && reason === "Deferred"),
  );
  assert.equal(statusOf(waiting, "main")?.resources?.limits?.["cpu"], "100m");
  await cluster.delete("big");
  await cluster.until("waits", "resized", (found) => hasSettled(found, "main", same(400, 32), 0));
  const reasons = await eventually(
    async () => {
      const { items } = await cluster.admin.list(
        resources.events,
        { namespace: "default" },
        {},
        AbortSignal.timeout(5_000),
      );
      const found = items.filter(({ involvedObject }) => involvedObject.name === "waits").map(({ reason }) => reason);
      return found.includes("ResizeCompleted") ? found : undefined;
    },
    "the event of its end",
    20_000,
  );
  assert.ok(reasons.length > 0);
  await cluster.delete("waits");
  await cluster.untilGone("waits");
});
