// Pressure that is real: pods that eat memory, fill disks, use up files or processes, on file systems and in a cgroup that
// are small enough for the machine not to notice. What counts is what the API server shows and what the kernel counts.
import assert from "node:assert/strict";
import { readFileSync, statfsSync } from "node:fs";
import { after, before, test } from "node:test";
import { CriClient } from "../../src/connections/cri/index.ts";
import { resources } from "../../src/connections/kube/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Event, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { answerMs, eventually, isReady } from "../support/agent.ts";
import { ApiCluster } from "../support/api-cluster.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { makeImage } from "../support/images.ts";
import { LoopDisk } from "../support/loop-disk.ts";
import { letEat, smallPodMemory, untilCondition } from "../support/memory-eater.ts";

const mebibyte = 2 ** 20;
const unusedImage = "localhost/eviction/unused:1";
let containerd: TestContainerd;
let cri: CriClient;
let cluster: ApiCluster;
const disks: LoopDisk[] = [];

before(async () => {
  containerd = await startContainerd(({ containerdRoot, agentRoot }) => {
    disks.push(LoopDisk.mountOn(containerdRoot, { megabytes: 256 }));
    disks.push(LoopDisk.mountOn(agentRoot, { megabytes: 128, inodes: 3_000 }));
  });
  cri = new CriClient({ runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 60_000 }, { clock: systemClock });
  // Before the agent starts, so that it knows the image for long enough to remove it.
  await containerd.importImage(await makeImage({ name: unusedImage, files: { big: "x".repeat(30 * mebibyte) } }));
  cluster = await ApiCluster.start(containerd, {
    ...smallPodMemory,
    evictionHard: {
      ...smallPodMemory.evictionHard,
      "nodefs.available": "40Mi",
      "nodefs.inodesFree": "500",
      "imagefs.available": "40Mi",
      "pid.available": String(freeTasks() - 700),
    },
    imageMinimumGCAge: "1s",
  });
  await cluster.create("bystander", running("sleep 100000"));
  await cluster.until("bystander", "ready", isReady);
});
after(async () => {
  cri?.close();
  await cluster?.[Symbol.asyncDispose]();
  await containerd?.[Symbol.asyncDispose]();
});

test("memory: who eats 100 MiB a second is dead before the kernel has to kill, and the Node says so", async () => {
  for (const name of ["eater-1", "eater-2"]) {
    await untilCondition(cluster, "MemoryPressure", "False");
    const { pod, oomKills } = await letEat(cluster, containerd, name, 100);
    assert.equal(oomKills, 0);
    assert.match(
      pod.status?.message ?? "",
      /Container main was using \S+i, request is 0, has larger consumption of memory\. $/,
    );
    await isEvicted(pod, "memory", "100Mi");
  }
  await untilTainted("memory");
  await cluster.create("newcomer", running("sleep 100000"));
  const refused = await cluster.until("newcomer", "refused", ({ status }) => status?.phase === "Failed");
  assert.equal(refused.status?.message, "Pod was rejected: The node had condition: [MemoryPressure]. ");
  assert.equal(refused.status?.reason, "Evicted");
  await untilCondition(cluster, "MemoryPressure", "False");
  const told = await nodeEvents();
  for (const reason of ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"]) assert.ok(told.has(reason), reason);
});

test("disk: a volume that fills the node's disk goes with its pod", async () => {
  const script =
    "trap '' TERM; i=0; while :; do dd if=/dev/zero of=/scratch/$i bs=1M count=5; i=$((i+1)); usleep 100000; done";
  await isEvicted(await evictedBy("filler", { script, scratch: true }), "ephemeral-storage", "40Mi");
  await untilCondition(cluster, "DiskPressure", "False");
});

test("files: whoever uses them up goes", async () => {
  const script = "i=0; while :; do touch /scratch/$i; i=$((i+1)); done";
  await isEvicted(await evictedBy("litterer", { script, scratch: true }), "inodes", "500");
  await untilCondition(cluster, "DiskPressure", "False");
});

test("images: those that nobody uses go first, and where that is enough no pod does", async () => {
  assert.ok((await imageNames()).includes(unusedImage));
  const { bavail, bsize } = statfsSync(containerd.layout.containerdRoot);
  const megabytes = Math.floor((bavail * bsize) / mebibyte) - 25;
  await cluster.create("settler", running(`dd if=/dev/zero of=/fill bs=1M count=${megabytes}; sleep 100000`));
  await eventually(async () => !(await imageNames()).includes(unusedImage), "the unused image is gone", 60_000);
  await untilCondition(cluster, "DiskPressure", "False");
  assert.equal((await cluster.pod("settler"))?.status?.phase, "Running");
  await cluster.delete("settler", 0);
  await cluster.untilGone("settler");
});

test("images: a pod that fills their disk goes", async () => {
  const script =
    "trap '' TERM; i=0; while :; do dd if=/dev/zero of=/$i.fill bs=1M count=5; i=$((i+1)); usleep 100000; done";
  await isEvicted(await evictedBy("writer", { script }), "ephemeral-storage", "40Mi");
  await untilCondition(cluster, "DiskPressure", "False");
});

test("processes: whoever has too many goes", async () => {
  const script = "for i in $(seq 1500); do sleep 1000 & done; wait";
  await isEvicted(await evictedBy("forker", { script }), "pids", undefined);
  await untilCondition(cluster, "PIDPressure", "False");
});

test("nobody else was touched, and what was done is counted", async () => {
  const pod = await cluster.pod("bystander");
  assert.equal(pod?.status?.phase, "Running", pod?.status?.message);
  assert.equal(pod?.status?.containerStatuses?.[0]?.restartCount, 0);
  const log = await cluster.agent.log();
  const signals = [...log.matchAll(/Evicting a pod because the node is short of resources".* signal="?([\w.]+)/g)].map(
    ([, name]) => name,
  );
  assert.deepEqual(signals, [
    "allocatableMemory.available",
    "allocatableMemory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "pid.available",
  ]);
});

/** Waits until the Node says that it is short of it, in condition and taint. */
async function untilTainted(resource: "memory" | "disk" | "pid"): Promise<void> {
  const condition = { memory: "MemoryPressure", disk: "DiskPressure", pid: "PIDPressure" }[resource];
  const isSo = async (): Promise<boolean> => {
    const soon = AbortSignal.timeout(answerMs);
    const { spec, status } = await cluster.admin.get(resources.nodes, { name: "test-node" }, {}, soon);
    const isPressed = status?.conditions?.some(({ type, status: is }) => type === condition && is === "True") === true;
    const key = `node.kubernetes.io/${resource}-pressure`;
    return isPressed && spec?.taints?.some((taint) => taint.key === key && taint.effect === "NoSchedule") === true;
  };
  await eventually(isSo, `the Node has ${condition} and its taint`, 60_000);
}

async function imageNames(): Promise<readonly string[]> {
  const { images } = await cri.images.listImages({ filter: undefined });
  return images.flatMap(({ repoTags }) => repoTags);
}

function running(script: string): Partial<PodSpec> {
  return {
    restartPolicy: "Never",
    containers: [{ name: "main", image: containerd.images.busybox, command: ["sh", "-c", script] }],
  };
}

async function evictedBy(name: string, { script, scratch }: { script: string; scratch?: boolean }): Promise<Pod> {
  const spec = running(script);
  const mounts = [{ name: "scratch", mountPath: "/scratch" }];
  await cluster.create(name, {
    ...spec,
    ...(scratch && {
      volumes: [{ name: "scratch", emptyDir: {} }],
      containers: (spec.containers ?? []).map((container) => ({ ...container, volumeMounts: mounts })),
    }),
  });
  return await cluster.until(name, "evicted", ({ status }) => status?.phase === "Failed", 90_000);
}

/** As the API server shows it, in status and events. */
async function isEvicted(pod: Pod, resource: string, threshold: string | undefined): Promise<void> {
  const { name = "" } = pod.metadata ?? {};
  const { status } = pod;
  assert.equal(status?.reason, "Evicted", JSON.stringify(status));
  const words = `The node was low on resource: ${resource}. Threshold quantity: ${threshold ?? ""}`;
  assert.ok(status.message?.startsWith(words), status.message);
  const target = status.conditions?.find(({ type }) => type === "DisruptionTarget");
  assert.deepEqual([target?.status, target?.reason, target?.message], ["True", "TerminationByKubelet", status.message]);
  const event = await eventually(
    async () => (await events()).find((each) => each.involvedObject?.name === name && each.reason === "Evicted"),
    `the event of ${name}`,
    30_000,
  );
  assert.deepEqual([event.type, event.message], ["Warning", status.message]);
  assert.equal(event.metadata?.annotations?.["starved_resource"], resource);
  const attempts = (await nodeEvents()).get("EvictionThresholdMet") ?? [];
  assert.ok(attempts.includes(`Attempting to reclaim ${resource}`), attempts.join("; "));
}

async function events(): Promise<readonly Event[]> {
  const namespace = "default";
  return (await cluster.admin.list(resources.events, { namespace }, {}, AbortSignal.timeout(answerMs))).items;
}

async function nodeEvents(): Promise<ReadonlyMap<string, readonly string[]>> {
  const messages = new Map<string, string[]>();
  for (const { involvedObject, reason = "", message = "" } of await events()) {
    if (involvedObject?.kind === "Node") messages.set(reason, [...(messages.get(reason) ?? []), message]);
  }
  return messages;
}

/** How many more processes and threads the machine could have. */
function freeTasks(): number {
  const read = (path: string): string => readFileSync(path, "utf8");
  const limits = ["pid_max", "threads-max"].map((file) => Number(read(`/proc/sys/kernel/${file}`)));
  return Math.min(...limits) - Number(/\/(\d+) /.exec(read("/proc/loadavg"))?.[1]);
}
