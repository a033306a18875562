// Memory, disks, files and processes that run short on cgroup v2 under systemd: who goes, what the API server is told of
// it, and that the kernel need not kill. The node's files and the images of the runtime have disks of their own.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Event, Node, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { GuestApi } from "./machine/guest-api.ts";
import { VirtualMachine } from "./machine/machine.ts";
import { progress } from "./machine/progress.ts";

let machine: VirtualMachine;
let agent: GuestAgent;
let api: GuestApi;

before(async () => {
  machine = await VirtualMachine.start({ name: "eviction", memoryMb: 1536, extraDisksMb: [200, 200] });
  const memoryKb = Number(await machine.run("awk '/^MemTotal/ {print $2}' /proc/meminfo"));
  await machine.run(
    "mkfs.ext4 -q -m 0 -N 3000 /dev/vdd && mkdir -p /var/lib/kubelet && mount /dev/vdd /var/lib/kubelet",
  );
  await machine.run(
    "systemctl stop containerd && mkfs.ext4 -q -m 0 /dev/vde && mount /dev/vde /mnt && cp -a /var/lib/containerd/. /mnt && " +
      "umount /mnt && mount /dev/vde /var/lib/containerd && systemctl start containerd",
  );
  agent = await GuestAgent.start(machine, {
    api: true,
    config: {
      enforceNodeAllocatable: ["pods"],
      // All pods together may use 300 MiB, of which 100 have to stay free.
      kubeReserved: { memory: `${memoryKb - 300 * 1024}Ki` },
      evictionHard: {
        "memory.available": "100Mi",
        "nodefs.available": "60Mi",
        "nodefs.inodesFree": "500",
        "imagefs.available": "60Mi",
        "pid.available": String((await freeTasks()) - morePids),
      },
      evictionPressureTransitionPeriod: "5s",
    },
  });
  api = await GuestApi.open(machine);
  await api.createPods([on(busyboxPod("idle", idleScript))]);
  await agent.untilReady(["idle"]);
});
after(() => machine?.[Symbol.asyncDispose]());

/** So many more than before the agent ran make processes run short: services and sandboxes have some hundred. */
const morePids = 400;

test("memory: who eats it is evicted, and the kernel has nobody to kill", async () => {
  const eat = "trap '' TERM; while :; do dd if=/dev/zero bs=1M count=4 2>/dev/null; usleep 90000; done | tail";
  const message = await evicted("eater", eat);
  const words =
    /^The node was low on resource: memory\. Threshold quantity: 100Mi, available: \d+Ki\. Container \S+ was using /;
  assert.match(message, words);
  const kills = await machine.run("awk '/^oom_kill / {print $2}' /sys/fs/cgroup/kubepods.slice/memory.events");
  assert.equal(kills, "0");
});

test("the node's disk: who fills it is evicted, and it has room again", async () => {
  const fill =
    "trap '' TERM; i=0; while :; do dd if=/dev/zero of=/scratch/$i bs=1M count=2; i=$((i+1)); usleep 200000; done";
  const message = await evicted("filler", fill, "with a scratch directory");
  assert.match(message, /^The node was low on resource: ephemeral-storage\. Threshold quantity: 60Mi, /);
  const room = `test "$(df --output=avail -BM /var/lib/kubelet | tail -1 | tr -dc 0-9)" -gt 60`;
  await machine.until("there is room again", room);
});

test("the node's files: who uses them up is evicted", async () => {
  // No program is started for them, which would take an emulated machine most of the time.
  const litter =
    "i=0; while :; do for n in 0 1 2 3 4 5 6 7 8 9; do : > /scratch/$i.$n; done; i=$((i+1)); usleep 20000; done";
  const message = await evicted("litterer", litter, "with a scratch directory");
  assert.match(message, /^The node was low on resource: inodes\. Threshold quantity: 500, /);
});

test("the disk of images: who fills it by what he writes into his container is evicted", async () => {
  const write =
    "trap '' TERM; i=0; while :; do dd if=/dev/zero of=/$i.fill bs=1M count=2; i=$((i+1)); usleep 200000; done";
  const message = await evicted("writer", write);
  assert.match(message, /^The node was low on resource: ephemeral-storage\. Threshold quantity: 60Mi, /);
});

test("processes: who has too many is evicted", async () => {
  const message = await evicted("forker", `for i in $(seq ${morePids + 200}); do sleep 100000 & done; wait`);
  assert.match(message, /^The node was low on resource: pids\. Threshold quantity: /);
});

test("who did nothing runs on, and what was done is told and counted", async () => {
  const idle = (await agent.pods()).get("idle");
  const evictions = await machine.run("journalctl --unit nodelet --no-pager --output cat | grep Evicting | tail -n 30");
  assert.equal(idle?.status?.phase, "Running", `${idle?.status?.message}\n${evictions}`);
  assert.equal((await agent.restartCounts()).get("idle"), 0);
  const metrics = await machine.run("curl -sSf --max-time 60 http://127.0.0.1:10255/metrics");
  const counted = [...metrics.matchAll(/^kubelet_evictions\{eviction_signal="(.*)"\} (\d+)$/gm)];
  assert.deepEqual(
    counted.map(([, signal, count]) => `${signal} ${count}`).sort(),
    [
      "allocatableMemory.available 1",
      "imagefs.available 1",
      "nodefs.available 1",
      "nodefs.inodesFree 1",
      "pid.available 1",
    ],
    evictions,
  );
  const reasons = new Set((await nodeEvents()).map(({ reason }) => reason));
  for (const reason of ["NodeHasInsufficientMemory", "NodeHasDiskPressure", "NodeHasInsufficientPID"]) {
    assert.ok(reasons.has(reason), `${reason}: ${[...reasons].join(" ")}`);
  }
});

/** Runs it until it is evicted, and looks whether all is told that has to be. Returns in which words. */
async function evicted(name: string, script: string, scratch?: "with a scratch directory"): Promise<string> {
  await untilNothingIsShort();
  const pod = busyboxPod(name, script, { spec: { restartPolicy: "Never" } });
  await api.createPods([on(scratch === undefined ? pod : withScratch(pod))]);
  const { status } = await agent.untilEvicted(name);
  const message = status?.message ?? "";
  const target = status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  assert.deepEqual([target?.status, target?.reason, target?.message], ["True", "TerminationByKubelet", message]);
  const resource = /resource: (\S+)\./.exec(message)?.[1];
  await soon(`events tell of ${name}`, async () => {
    const events = await api.list<Event>("/api/v1/namespaces/default/events");
    const isTold = events.some(
      (event) => event.involvedObject.name === name && event.reason === "Evicted" && event.message === message,
    );
    const reclaiming = `Attempting to reclaim ${resource}`;
    return isTold && events.some((event) => event.involvedObject.kind === "Node" && event.message === reclaiming);
  });
  await soon(`the API server knows of ${name}`, async () => {
    const told = (await api.pods()).get(name)?.status;
    return told?.phase === "Failed" && told.reason === "Evicted" && told.message === message;
  });
  progress(`${name}: ${message}`);
  return message;
}

/** While it is, pods are refused. */
async function untilNothingIsShort(): Promise<void> {
  await soon("the node has enough of everything", async () => {
    const [node] = await api.list<Node>("/api/v1/nodes");
    const pressed = node?.status?.conditions?.filter(
      ({ type, status }) => type.endsWith("Pressure") && status !== "False",
    );
    return pressed?.length === 0;
  });
}

async function nodeEvents(): Promise<readonly Event[]> {
  const events = await api.list<Event>("/api/v1/namespaces/default/events");
  return events.filter(({ involvedObject }) => involvedObject.kind === "Node");
}

/** Asked again and again; nobody says how long an emulated machine takes. */
async function soon(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (await isSo()) return;
    await machine.run("sleep 1");
  }
  throw new Error(`${what}: not in 200 looks; the agent says:\n${await agent.log(40)}`);
}

/** How many more processes and threads the machine could have. */
async function freeTasks(): Promise<number> {
  const text = await machine.run("cat /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max /proc/loadavg");
  const [pids = "", threads = "", load = ""] = text.split("\n");
  return Math.min(Number(pids), Number(threads)) - Number(/\/(\d+) /.exec(load)?.[1]);
}

function on(pod: Pod): Pod {
  return { ...pod, spec: { ...pod.spec, nodeName: "vm" } as PodSpec };
}

function withScratch(pod: Pod): Pod {
  const [container] = pod.spec?.containers ?? [];
  if (container === undefined) throw new Error("a pod has a container");
  const volumeMounts = [{ name: "scratch", mountPath: "/scratch" }];
  const volumes = [{ name: "scratch", emptyDir: {} }];
  return { ...pod, spec: { ...pod.spec, volumes, containers: [{ ...container, volumeMounts }] } };
}
