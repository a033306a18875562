// The machine loses its power, and the API server is away when it comes back: what starts follows decision 0051, and each pod
// comes back once.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ContainerState, CriClient, PodSandboxState } from "../../src/connections/cri/index.ts";
import { type KubeObject, type Resource, resources } from "../../src/connections/kube/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { OwnerReference, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { runtimeLabels } from "../../src/pod/runtime/index.ts";
import { answerMs, eventually, isReady } from "../support/agent.ts";
import { clusterForTests } from "../support/cluster-for-tests.ts";
import { marking, startsOf } from "../support/start-marks.ts";

const here = clusterForTests();

const soon = (): AbortSignal => AbortSignal.timeout(answerMs);
/** Pods from the API, by what owns them. */
const fromApi: Readonly<Record<string, "DaemonSet" | "StatefulSet" | undefined>> = {
  daemon: "DaemonSet",
  stateful: "StatefulSet",
  bare: undefined,
};
const staticName = "static-test-node";
const names = [...Object.keys(fromApi), staticName];
const waits = Object.keys(fromApi);

function spec(name: string): Partial<PodSpec> {
  const { volumes, containers } = marking(here.containerd, name);
  return {
    terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
    volumes: [...volumes, { name: "memory", emptyDir: { medium: "Memory" } }],
    containers: containers.map(({ volumeMounts = [], ...container }) => ({
      ...container,
      readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
      volumeMounts: [...volumeMounts, { name: "memory", mountPath: "/memory" }],
    })),
  };
}

/** How often each pod has started. */
async function starts(): Promise<Readonly<Record<string, number>>> {
  const found: Record<string, number> = {};
  for (const name of names) found[name] = await startsOf(here.containerd, name);
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
  const { metadata } = await here.cluster.admin.create(resource, { namespace: "default" }, body, soon());
  return { apiVersion, kind, name, uid: metadata?.uid ?? "", controller: true };
}

async function inApi(name: string): Promise<Pod> {
  return await here.cluster.admin.get(resources.pods, { namespace: "default", name }, {}, soon());
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
  const settings = { runtimeEndpoint: here.containerd.endpoint, requestTimeoutMs: 60_000 };
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

test("a loss of power, and no API server after it until all is decided without", { timeout: 900_000 }, async () => {
  for (const [name, owner] of Object.entries(fromApi)) {
    const ownerReferences = owner === undefined ? [] : [await makeOwner(owner)];
    const pod: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: "default", ownerReferences },
      spec: { nodeName: "test-node", containers: [], ...spec(name) },
    };
    await here.cluster.admin.create(resources.pods, { namespace: "default" }, pod, soon());
  }
  await here.cluster.agent.apply("static", spec(staticName), { namespace: "default" });
  await eventually(() => areReady(0), "all pods are ready", 120_000);
  // The list on disk holds them a second later.
  const list = join(here.cluster.agent.rootDir, "nodelet", "api-pods.json");
  const listed = async (): Promise<boolean> => {
    const { pods } = JSON.parse(await readFile(list, "utf8")) as { readonly pods: readonly Pod[] };
    return Object.keys(fromApi).every((name) => pods.some(({ metadata }) => metadata?.name === name));
  };
  await eventually(listed, "the list on disk holds them", 60_000);
  assert.deepEqual(await starts(), every(names, 1));

  await here.cluster.agent.kill9();
  await here.containerd.losePower();
  await here.cluster.outage.begin();
  await here.containerd.restart();
  await here.cluster.agent.begin();
  await eventually(async () => (await startsOf(here.containerd, staticName)) > 1, "the static pod starts", 60_000);
  // Its containers wait for the services; its sandbox does not.
  await eventually(async () => (await live()).includes("daemon"), "the DaemonSet's pod is begun", 60_000);
  await eventually(
    async () => (await here.cluster.judgementsWithoutApi()) > 0,
    "pods are judged without the API",
    60_000,
  );
  for (const name of ["stateful", "bare"]) {
    const { metadata } = await inApi(name);
    const isHeldBack = async (): Promise<boolean> => {
      const { ledger } = await here.cluster.agent.client.ledger(metadata?.uid ?? "", soon());
      return /the API server, which can't be reached: it does not run here/.test(ledger.blocker?.message ?? "");
    };
    await eventually(isHeldBack, `${name} is held back`, 60_000);
  }
  assert.deepEqual(await starts(), { ...every(waits, 1), [staticName]: 2 });
  assert.deepEqual(await live(), ["daemon", staticName, staticName]);

  await here.cluster.outage.end();
  await eventually(() => areReady(1), "all pods are ready again, restarted once", 120_000);
  assert.deepEqual(await starts(), every(names, 2));
  assert.deepEqual(await live(), [...names, ...names].sort());
  const addresses = [];
  for (const name of names) addresses.push((await inApi(name)).status?.podIP);
  assert.equal(new Set(addresses).size, names.length, addresses.join());
});
