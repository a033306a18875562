// Memory and disk that run short on cgroup v2 under systemd: who goes, what is said of it, and that the kernel need not kill.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Pod } from "../../src/ground/model/index.ts";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";

const kubectl = "curl -sSf --max-time 60 --unix-socket /var/lib/kubelet/nodelet.sock";
let machine: VirtualMachine;
let agent: GuestAgent;

before(async () => {
  machine = await VirtualMachine.start({ name: "eviction", memoryMb: 1536, extraDisksMb: [200] });
  const memoryKb = Number(await machine.run("awk '/^MemTotal/ {print $2}' /proc/meminfo"));
  await machine.run("mkfs.ext4 -q /dev/vdd && mkdir -p /var/lib/kubelet && mount /dev/vdd /var/lib/kubelet");
  agent = await GuestAgent.start(machine, {
    config: {
      enforceNodeAllocatable: ["pods"],
      // All pods together may use 300 MiB, of which 100 have to stay free.
      kubeReserved: { memory: `${memoryKb - 300 * 1024}Ki` },
      evictionHard: { "memory.available": "100Mi", "nodefs.available": "60Mi" },
      evictionPressureTransitionPeriod: "5s",
    },
  });
  await agent.putStaticPod(busyboxPod("idle", idleScript));
  await agent.untilReady(["idle-vm"]);
});
after(() => machine?.[Symbol.asyncDispose]());

test("a pod that eats memory is evicted, and the kernel has nobody to kill", async () => {
  const eat = "trap '' TERM; while :; do dd if=/dev/zero bs=1M count=1 2>/dev/null; usleep 90000; done | tail";
  await agent.putStaticPod(busyboxPod("eater", eat, { spec: { restartPolicy: "Never" } }));
  const pod = await untilEvicted("eater-vm");
  const words =
    /^The node was low on resource: memory\. Threshold quantity: 100Mi, available: \d+Ki\. Container \S+ was using /;
  assert.match(pod.status?.message ?? "", words);
  const target = pod.status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  assert.deepEqual([target?.status, target?.reason], ["True", "TerminationByKubelet"]);
  const kills = await machine.run("awk '/^oom_kill / {print $2}' /sys/fs/cgroup/kubepods.slice/memory.events");
  assert.equal(kills, "0");
});

test("a pod that fills the node's disk is evicted, and the disk has room again", async () => {
  const fill =
    "trap '' TERM; i=0; while :; do dd if=/dev/zero of=/scratch/$i bs=1M count=2; i=$((i+1)); usleep 200000; done";
  const filler = busyboxPod("filler", fill, {
    spec: { restartPolicy: "Never", volumes: [{ name: "scratch", emptyDir: {} }] },
  });
  const [container] = filler.spec?.containers ?? [];
  const mounted = {
    ...container,
    name: container?.name ?? "",
    volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
  };
  await agent.putStaticPod({ ...filler, spec: { ...filler.spec, containers: [mounted] } });
  const pod = await untilEvicted("filler-vm");
  assert.match(
    pod.status?.message ?? "",
    /^The node was low on resource: ephemeral-storage\. Threshold quantity: 60Mi, /,
  );
  const room = `test "$(df --output=avail -BM /var/lib/kubelet | tail -1 | tr -dc 0-9)" -gt 60`;
  await machine.until("there is room again", room);
});

test("who did nothing runs on, and what was done is counted", async () => {
  const pods = await agent.pods();
  assert.equal(pods.get("idle-vm")?.status?.phase, "Running");
  assert.equal((await agent.restartCounts()).get("idle-vm"), 0);
  const metrics = await machine.run("curl -sSf --max-time 60 http://127.0.0.1:10255/metrics");
  assert.match(metrics, /^kubelet_evictions\{eviction_signal="allocatableMemory.available"\} 1$/m);
  assert.match(metrics, /^kubelet_evictions\{eviction_signal="nodefs.available"\} 1$/m);
});

async function untilEvicted(name: string): Promise<Pod> {
  const isOver = `${kubectl} http://agent/pods | node -e '${isEvicted(name)}'`;
  await machine.until(`${name} is evicted`, isOver);
  const pod = (await agent.pods()).get(name);
  assert.ok(pod !== undefined);
  return pod;
}

function isEvicted(name: string): string {
  return (
    'const { items } = JSON.parse(require("fs").readFileSync(0, "utf8")); ' +
    `const pod = items.find(({ metadata }) => metadata.name === "${name}"); ` +
    'process.exit(pod?.status?.phase === "Failed" && pod.status.reason === "Evicted" ? 0 : 1)'
  );
}
