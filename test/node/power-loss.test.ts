// The machine loses its power, and the API server is away when it comes back: what starts follows decision 0051, and each pod
// comes back once.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ContainerState, CriClient, PodSandboxState } from "../../src/connections/cri/index.ts";
import { type KubeObject, type Resource, resources } from "../../src/connections/kube/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { OwnerReference, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { runtimeLabels } from "../../src/pod/runtime/index.ts";
import { eventually, isReady } from "../support/agent.ts";
import { ApiCluster } from "../support/api-cluster.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { untilTold } from "../support/raw-runtime.ts";

/** The API server is away for so long after the agent has started: longer than it waits for the Node (10 s). */
const awayMs = 15_000;

let containerd: TestContainerd;
let cluster: ApiCluster;
before(async () => {
  containerd = await startContainerd();
  cluster = await ApiCluster.start(containerd);
});
after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await containerd?.[Symbol.asyncDispose]();
});

const soon = (): AbortSignal => AbortSignal.timeout(20_000);
/** Pods from the API, by what owns them. */
const fromApi: Readonly<Record<string, "DaemonSet" | "StatefulSet" | undefined>> = {
  daemon: "DaemonSet",
  stateful: "StatefulSet",
  bare: undefined,
};
const staticName = "static-test-node";
const names = [...Object.keys(fromApi), staticName];
const waits = Object.keys(fromApi);

/** Every start of a container leaves a line in a file of the node. */
function spec(name: string): Partial<PodSpec> {
  const rest = untilTold.at(-1) ?? "";
  return {
    terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
    volumes: [
      { name: "marks", hostPath: { path: containerd.stateDir } },
      { name: "memory", emptyDir: { medium: "Memory" } },
    ],
    containers: [
      {
        name: "main",
        image: containerd.images.busybox,
        command: ["sh", "-c", `echo start >> /marks/${name}.starts; ${rest}`],
        readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
        volumeMounts: [
          { name: "marks", mountPath: "/marks" },
          { name: "memory", mountPath: "/memory" },
        ],
      },
    ],
  };
}

async function starts(name: string): Promise<number> {
  const text = await readFile(join(containerd.stateDir, `${name}.starts`), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line === "start").length;
}

async function startsOf(some: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const found: Record<string, number> = {};
  for (const name of some) found[name] = await starts(name);
  return found;
}

const every = (some: readonly string[], count: number): object => Object.fromEntries(some.map((name) => [name, count]));

interface Workload extends KubeObject {
  readonly spec: object;
}

/** Nobody makes pods of it; it is there so that they have an owner. */
async function makeOwner(kind: "DaemonSet" | "StatefulSet"): Promise<OwnerReference> {
  const apiVersion = "apps/v1";
  const plural = `${kind.toLowerCase()}s`;
  const resource: Resource<Workload> = { apiVersion, kind, plural, scope: "namespace" };
  const labels = { made: "by hand" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "none" }] } };
  const name = `owner-${plural}`;
  const body: Workload = {
    apiVersion,
    kind,
    metadata: { name },
    spec: { selector: { matchLabels: labels }, template },
  };
  const { metadata } = await cluster.admin.create(resource, { namespace: "default" }, body, soon());
  return { apiVersion, kind, name, uid: metadata?.uid ?? "", controller: true };
}

async function inApi(name: string): Promise<Pod> {
  return await cluster.admin.get(resources.pods, { namespace: "default", name }, {}, soon());
}

async function areReady(restarts: number): Promise<boolean> {
  for (const name of names) {
    const pod = await inApi(name);
    if (!isReady(pod) || pod.status?.containerStatuses?.[0]?.restartCount !== restarts) return false;
  }
  return true;
}

/** Live sandboxes and running containers, by pod. */
async function live(): Promise<readonly string[]> {
  const settings = { runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 60_000 };
  const cri = new CriClient(settings, { clock: systemClock });
  try {
    const { items } = await cri.runtime.listPodSandbox({ filter: undefined });
    const { containers } = await cri.runtime.listContainers({ filter: undefined });
    return [
      ...items.filter(({ state }) => state === PodSandboxState.SANDBOX_READY).map(({ labels }) => labels),
      ...containers.filter(({ state }) => state === ContainerState.CONTAINER_RUNNING).map(({ labels }) => labels),
    ]
      .map((labels) => labels[runtimeLabels.podName] ?? "")
      .sort();
  } finally {
    cri.close();
  }
}

test("a loss of power, and 15 s without the API server after it", { timeout: 900_000 }, async () => {
  for (const [name, owner] of Object.entries(fromApi)) {
    const ownerReferences = owner === undefined ? [] : [await makeOwner(owner)];
    const pod: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: "default", ownerReferences },
      spec: { nodeName: "test-node", containers: [], ...spec(name) },
    };
    await cluster.admin.create(resources.pods, { namespace: "default" }, pod, soon());
  }
  await cluster.agent.apply("static", spec(staticName), { namespace: "default" });
  await eventually(() => areReady(0), "all pods are ready", 120_000);
  // The list on disk holds them a second later.
  const list = join(cluster.agent.rootDir, "nodelet", "api-pods.json");
  const listed = async (): Promise<boolean> => {
    const { pods } = JSON.parse(await readFile(list, "utf8")) as { readonly pods: readonly Pod[] };
    return Object.keys(fromApi).every((name) => pods.some(({ metadata }) => metadata?.name === name));
  };
  await eventually(listed, "the list on disk holds them", 60_000);
  assert.deepEqual(await startsOf(names), every(names, 1));

  await cluster.agent.kill9();
  await containerd.losePower();
  await cluster.outage.begin();
  await containerd.restart();
  const beganAt = systemClock.monotonic();
  await cluster.agent.begin();
  await eventually(async () => (await starts(staticName)) > 1, "the static pod starts", 60_000);
  // Its containers wait for the services; its sandbox does not.
  await eventually(async () => (await live()).includes("daemon"), "the DaemonSet's pod is begun", 60_000);
  await systemClock.sleep(Math.max(0, beganAt + awayMs - systemClock.monotonic()), new AbortController().signal);
  assert.deepEqual(await startsOf(names), { ...every(waits, 1), [staticName]: 2 });
  assert.deepEqual(await live(), ["daemon", staticName, staticName]);
  for (const name of ["stateful", "bare"]) {
    const { ledger } = await cluster.agent.client.ledger((await inApi(name)).metadata?.uid ?? "", soon());
    assert.match(ledger.blocker?.message ?? "", /the API server, which can't be reached: it does not run here/);
  }

  await cluster.outage.end();
  await eventually(() => areReady(1), "all pods are ready again, restarted once", 120_000);
  assert.deepEqual(await startsOf(names), every(names, 2));
  assert.deepEqual(await live(), [...names, ...names].sort());
  const addresses = [];
  for (const name of names) addresses.push((await inApi(name)).status?.podIP);
  assert.equal(new Set(addresses).size, names.length, addresses.join());
});
