import assert from "node:assert/strict";
import { copyFile, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeClient, Resource } from "../../../src/connections/kube/index.ts";
import { resources } from "../../../src/connections/kube/index.ts";
import { systemClock } from "../../../src/ground/base/index.ts";
import type { ObjectMeta, Pod, PodSpec } from "../../../src/ground/model/index.ts";
import { isReady, type TestAgent } from "../agent.ts";
import { adminClients, ClusterPods, type PodWatch } from "../cluster-pods.ts";
import { startContainerd } from "../containerd.ts";
import { findControlPlane, joinControlPlane, startLocalControlPlane } from "../restart-proof/control-plane.ts";
import { seededRandom } from "../seeded-random.ts";
import { soon } from "../until.ts";
import { kernelLimits, limitsOf } from "./kernel-limits.ts";
import { countDongles, policies, shapes, type Walk, walk } from "./matrix.ts";
import {
  containerStatus,
  hasSettled,
  type ResizePolicy,
  resizable,
  resize,
  resizeConditions,
  runtimeId,
} from "./resizing.ts";
import { same, sumOf, type Wish } from "./wishes.ts";

export const proofParts = ["matrix", "deferred", "crash loop", "termination", "kills"] as const;
export type ProofPart = (typeof proofParts)[number];

export interface ResizeProofOptions {
  readonly seed: number;
  readonly kills: number;
  readonly parts: readonly ProofPart[];
  /** The directory of a control plane that is there already; without it a local API server is started. */
  readonly cluster?: string | undefined;
  readonly report: (line: string) => void;
}

const steps: Readonly<Record<ProofPart, (proof: Proof) => Promise<number>>> = {
  matrix: proveMatrix,
  deferred: proveDeferred,
  "crash loop": proveCrashLoop,
  termination: proveTermination,
  kills: proveKills,
};

interface Proof extends Walk {
  readonly agent: TestAgent;
  readonly admin: KubeClient;
  readonly random: () => number;
  readonly options: ResizeProofOptions;
}

/** Everything that may become of resizes of running pods; throws at what must not. How many resizes each part made. */
export async function proveResizes(options: ResizeProofOptions): Promise<Readonly<Record<string, number>>> {
  await using containerd = await startContainerd();
  await using plane = await (options.cluster === undefined
    ? startLocalControlPlane(containerd)
    : findControlPlane(options.cluster));
  using clients = await adminClients(plane.adminKubeconfig);
  await using agent = await joinControlPlane(containerd, plane);
  const admin = clients.main;
  const cluster = new ClusterPods({ agent, admin });
  await countDongles(cluster, 10);
  await using watch: PodWatch = await cluster.watch();
  const random = seededRandom(options.seed);
  const proof: Proof = { cluster, watch, agent, admin, random, options, image: containerd.images.busybox };
  const resized: Record<string, number> = {};
  for (const part of options.parts) {
    const began = systemClock.monotonic();
    try {
      resized[part] = await steps[part](proof);
    } catch (error) {
      // The log would go with the machine; whoever looks for the cause needs it.
      const kept = join(await mkdtemp(join(tmpdir(), "nodelet-resizes-")), "agent.log");
      await copyFile(agent.logFile, kept);
      throw new Error(`${part}: ${String(error)}\nthe agent's log is ${kept}`, { cause: error });
    }
    options.report(`${part}: ${resized[part]} resizes in ${Math.round((systemClock.monotonic() - began) / 1000)} s`);
  }
  return resized;
}

async function proveMatrix(proof: Proof): Promise<number> {
  let resized = 0;
  for (const policy of policies) {
    const counts = await Promise.all(shapes.map((shape) => walk(proof, shape, policy)));
    resized += counts.reduce((sum, count) => sum + count, 0);
  }
  return resized;
}

interface PriorityClass {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly value: number;
}

const priorityClasses: Resource<PriorityClass> = {
  apiVersion: "scheduling.k8s.io/v1",
  kind: "PriorityClass",
  plural: "priorityclasses",
  scope: "cluster",
};

const isDeferred = (pod: Pod): boolean => resizeConditions(pod).includes("PodResizePending Deferred");

/** What has no room waits; when a pod leaves, the most important has it first, and one that shrinks makes room again. */
async function proveDeferred({ cluster, admin, watch, image }: Proof): Promise<number> {
  const priorities = { low: 10, middle: 20, high: 30 };
  for (const [name, value] of Object.entries(priorities)) {
    const created = { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name }, value };
    await admin.create(priorityClasses, {}, created, soon());
  }
  const node = await admin.get(resources.nodes, { name: "test-node" }, {}, soon());
  const cpus = milliCpus(node.status?.allocatable?.["cpu"]);
  const spec = (cpu: number, priorityClassName?: string): Partial<PodSpec> => ({
    containers: [resizable(image, "main", same(cpu, 32), "NotRequired")],
    ...(priorityClassName === undefined ? {} : { priorityClassName }),
  });
  // Three of 100 each grow by 300: there is room for nobody now, and for two when the big one is gone.
  await cluster.create("big", spec(cpus - 400));
  for (const name of Object.keys(priorities)) await cluster.create(name, spec(100, name));
  for (const name of ["big", ...Object.keys(priorities)]) await cluster.until(name, "ready", isReady);
  const wish = same(Math.floor((cpus - 100) / 2), 32);
  for (const name of Object.keys(priorities)) {
    await resize(cluster, name, { main: wish });
    await cluster.until(name, "Deferred", isDeferred);
  }
  await cluster.delete("big");
  const done = (name: string) => cluster.until(name, "resized", (pod) => hasSettled(pod, "main", wish));
  await done("high");
  await done("middle");
  const lowest = await cluster.until("low", "still Deferred", isDeferred);
  assert.equal(containerStatus(lowest, "main")?.resources?.requests?.["cpu"], "100m");
  await resize(cluster, "high", { main: same(150, 32) });
  await resize(cluster, "middle", { main: same(150, 32) });
  await done("low");
  for (const name of Object.keys(priorities)) {
    const told = watch.versions(name).map((pod) => resizeConditions(pod)[0] ?? "");
    const order = told.filter((what, index) => what !== "" && what !== told[index - 1]);
    const withoutProgress = order.filter((what) => what !== "PodResizeInProgress");
    assert.deepEqual(withoutProgress, ["PodResizePending Deferred"], `${name}: ${order.join(", ")}`);
    const { uid = "" } = (await cluster.pod(name))?.metadata ?? {};
    assert.deepEqual(kernelLimits(uid), limitsOf(name === "low" ? wish : same(150, 32)), name);
  }
  for (const name of Object.keys(priorities)) {
    await cluster.delete(name);
    await cluster.untilGone(name);
    await admin.delete(priorityClasses, { name }, {}, soon());
  }
  return 5;
}

function milliCpus(quantity = "0"): number {
  return quantity.endsWith("m") ? Number.parseInt(quantity, 10) : Number(quantity) * 1000;
}

/** A container that ends again and again starts with what it was promised meanwhile, no sooner than it would have. */
async function proveCrashLoop({ cluster, image }: Proof): Promise<number> {
  for (const policy of policies) {
    const name = `crashing-${policy.toLowerCase()}`;
    const crashing = resizable(image, "main", same(100, 32), policy, { command: ["sh", "-c", "sleep 1; exit 3"] });
    await cluster.create(name, { containers: [crashing, resizable(image, "calm", same(50, 16), policy)] });
    const isWaiting = (pod: Pod): boolean =>
      containerStatus(pod, "main")?.state?.waiting?.reason === "CrashLoopBackOff";
    const before = await cluster.until(name, "in back-off", isWaiting);
    const restarts = containerStatus(before, "main")?.restartCount ?? 0;
    await resize(cluster, name, { main: same(200, 64) });
    const now = await cluster.until(name, "runs again", (pod) => {
      const found = containerStatus(pod, "main");
      return found?.restartCount === restarts + 1 && found.state?.running !== undefined;
    });
    const { uid = "" } = now.metadata ?? {};
    assert.deepEqual(kernelLimits(uid, runtimeId(now, "main")), limitsOf(same(200, 64)), name);
    assert.deepEqual(kernelLimits(uid), limitsOf(sumOf([same(200, 64), same(50, 16)])), `${name} as a whole`);
    assert.equal(containerStatus(now, "calm")?.restartCount, 0, name);
    await cluster.delete(name, 0);
    await cluster.untilGone(name);
  }
  return policies.length;
}

/** A pod that is ending is left alone, and ends as it would have. */
async function proveTermination({ cluster, image, watch }: Proof): Promise<number> {
  for (const policy of policies) {
    const name = `ending-${policy.toLowerCase()}`;
    const slow = { command: ["sh", "-c", 'trap "sleep 4; exit 7" TERM; sleep 1d & wait'] };
    await cluster.create(name, {
      terminationGracePeriodSeconds: 30,
      containers: [resizable(image, "main", same(100, 32), policy, slow)],
    });
    await cluster.until(name, "ready", isReady);
    await cluster.delete(name);
    await resize(cluster, name, { main: same(300, 64) }).catch(() => {});
    await cluster.untilGone(name);
    const last = watch.lastSeen(name);
    const ended = last === undefined ? undefined : containerStatus(last, "main");
    assert.equal(ended?.restartCount, 0, name);
    assert.equal(ended?.state?.terminated?.exitCode, 7, `${name} ended in its own time: ${JSON.stringify(ended)}`);
  }
  return policies.length;
}

/** The agent is killed at any moment of resizes of four pods: all is right in the end, and nothing restarts needlessly. */
async function proveKills({ cluster, agent, image, random, options }: Proof): Promise<number> {
  const pods: readonly { readonly name: string; readonly policy: ResizePolicy; readonly more: Partial<PodSpec> }[] = [
    { name: "one", policy: "NotRequired", more: {} },
    { name: "three", policy: "NotRequired", more: { containers: [fixed(image, "two"), fixed(image, "three")] } },
    {
      name: "beside",
      policy: "NotRequired",
      more: { initContainers: [{ ...fixed(image, "side"), restartPolicy: "Always" }] },
    },
    { name: "anew", policy: "RestartContainer", more: {} },
  ];
  for (const { name, policy, more } of pods) {
    const { containers = [], ...rest } = more;
    const first: Wish = { requests: { cpu: 60, memory: 24 }, limits: { cpu: 120, memory: 50 } };
    const main = resizable(image, "main", first, policy);
    await cluster.create(name, { ...rest, containers: [main, ...containers], terminationGracePeriodSeconds: 1 });
  }
  for (const { name } of pods) await cluster.until(name, "ready", isReady);
  let restarts = 0;
  let cutOff = 0;
  for (let kill = 0; kill < options.kills; kill++) {
    const wish: Wish = {
      requests: { cpu: 20 + Math.floor(random() * 100), memory: 20 + Math.floor(random() * 30) },
      limits: { cpu: 130 + kill, memory: 60 + (kill % 60) },
    };
    await Promise.all(pods.map(({ name }) => resize(cluster, name, { main: wish })));
    restarts++;
    await systemClock.sleep(Math.floor(random() ** 2 * 600), new AbortController().signal);
    await agent.kill9();
    await agent.begin();
    for (const { name, policy, more } of pods) {
      const asked = policy === "RestartContainer" ? restarts : 0;
      const what = `kill ${kill + 1}: ${JSON.stringify(wish)}`;
      const shown = await cluster.until(name, what, (pod) => hasSettled(pod, "main", wish, asked));
      const { uid = "" } = shown.metadata ?? {};
      const wasCutOff = wasGivenUp(shown);
      if (wasCutOff) {
        cutOff++;
        restarts++;
      }
      const wanted = asked + (wasCutOff ? 1 : 0);
      assert.equal(containerStatus(shown, "main")?.restartCount, wanted, `restarts of ${name}, ${what}`);
      assert.deepEqual(kernelLimits(uid, runtimeId(shown, "main")), limitsOf(wish), `${name}, ${what}`);
      const others = [...(more.containers ?? []), ...(more.initContainers ?? [])];
      for (const other of others) assert.equal(containerStatus(shown, other.name)?.restartCount, 0, `${name}, ${what}`);
      assert.deepEqual(
        kernelLimits(uid),
        limitsOf(sumOf([wish, ...others.map(() => beside)])),
        `${name} as a whole, ${what}`,
      );
    }
    if ((kill + 1) % 10 === 0) options.report(`${kill + 1} of ${options.kills} kills`);
  }
  options.report(`${cutOff} starts had begun to run when they were cut off, and were made again`);
  for (const { name } of pods) {
    await cluster.delete(name);
    await cluster.untilGone(name);
  }
  return options.kills * pods.length;
}

/**
 * containerd gives up a start when the agent that asked for it is gone. Where that had begun to run, one more restart is
 * the truth, and can't be had otherwise; where it had not, it must not be counted.
 */
function wasGivenUp(pod: Pod): boolean {
  const { reason, message = "" } = containerStatus(pod, "main")?.lastState?.terminated ?? {};
  return reason === "StartError" && /^failed to start containerd task .*context canceled/.test(message);
}

const beside: Wish = same(50, 16);

function fixed(image: string, name: string): ReturnType<typeof resizable> {
  return resizable(image, name, beside, "RestartContainer");
}
