// A machine with two NUMA nodes, cgroup v2 and systemd: whose CPUs and memory containers really get, and keep.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";
import { podSlice, readSlices } from "./machine/slices.ts";

const mebibyte = 2 ** 20;
/** Cores 0-1, 2-3 belong to node 0 and 4-5, 6-7 to node 1; the first core is reserved. */
const config = {
  cpuManagerPolicy: "static",
  cpuManagerPolicyOptions: { "full-pcpus-only": "true" },
  memoryManagerPolicy: "Static",
  topologyManagerPolicy: "single-numa-node",
  reservedSystemCPUs: "0-1",
  systemReserved: { memory: "156Mi" },
  evictionHard: { "memory.available": "100Mi" },
  reservedMemory: [{ numaNode: 0, limits: { memory: "256Mi" } }],
};

const aligned = (name: string, cpu: string, memory: string) => {
  const amounts = { cpu, memory };
  return busyboxPod(name, idleScript, { resources: { requests: amounts, limits: amounts } });
};
const names = ["left-vm", "right-vm", "shared-vm"];

let machine: VirtualMachine;
let agent: GuestAgent;
before(async () => {
  machine = await VirtualMachine.start({ name: "numa", memoryMb: 2048, numa: { threadsPerCore: 2 } });
  agent = await GuestAgent.start(machine, { config });
});
after(() => machine?.[Symbol.asyncDispose]());

/** What the kernel lets the pod's container use, and its files; `shared` is what it says of itself. */
interface Placed {
  readonly pinned: string;
  readonly nodes: string;
  readonly cpus: string;
  readonly mems: string;
}

test("each pod gets CPUs and memory of one node, and who has none of its own gets the rest", async () => {
  await agent.putStaticPod(
    busyboxPod("shared", idleScript, { resources: { requests: { cpu: "100m", memory: "16Mi" } } }),
  );
  await agent.untilReady(["shared-vm"]);
  assert.equal((await placed("shared-vm", "burstable")).pinned, "0-7");
  // Only node 1 has four CPUs that are free.
  await agent.putStaticPod(aligned("right", "4", "96Mi"));
  await agent.untilReady(["right-vm", "shared-vm"]);
  await agent.putStaticPod(aligned("left", "2", "64Mi"));
  await agent.untilReady(names);
  await assertPlaced();
});

test("the slices have limits and no quota where CPUs are owned, as unit properties too", async () => {
  await assertSlices();
  for (const [name, memory] of [
    ["left-vm", 64],
    ["right-vm", 96],
  ] as const) {
    const shown = await properties(await sliceOf(name, "guaranteed"));
    assert.equal(shown["MemoryMax"], String(memory * mebibyte));
    assert.equal(shown["CPUQuotaPerSecUSec"], "infinity");
    assert.equal(shown["ActiveState"], "active");
  }
  const status = await machine.run("systemctl status --no-pager --lines 0 kubepods.slice");
  assert.match(status, /Active: active since/);
  assert.match(status, /Memory: .*max: /);
  assert.equal(
    await machine.run("systemctl list-units --failed --no-legend --plain 'kubepods*' 'cri-containerd*'"),
    "",
  );
});

test("a pod that fits no single node is refused in the kubelet's words", async () => {
  await agent.putStaticPod(aligned("wide", "6", "16Mi"));
  const seen = `curl -sSf --unix-socket /var/lib/kubelet/nodelet.sock http://agent/pods | grep -q TopologyAffinityError`;
  await machine.until("the pod is refused", seen);
  const status = (await agent.pods()).get("wide-vm")?.status;
  assert.deepEqual([status?.phase, status?.reason], ["Failed", "TopologyAffinityError"]);
  await agent.removeStaticPod("wide");
  await agent.untilReady(names);
  await assertPlaced();
});

test("daemon-reload, a restart and a kill of the agent change nothing", async () => {
  const before = { tasks: await agent.tasks(), files: await stateFiles() };
  const assertSame = async (): Promise<void> => {
    assert.deepEqual(await agent.tasks(), before.tasks);
    assert.equal(await stateFiles(), before.files);
    await assertPlaced();
    await assertSlices();
  };
  await machine.run("systemctl daemon-reload && systemctl daemon-reload");
  await assertSame();
  await machine.run("systemctl restart nodelet");
  await agent.untilReady(names);
  await assertSame();
  const pid = await agent.property("MainPID");
  await machine.run(`kill -9 ${pid}`);
  const isBack = `p=$(systemctl show --value -p MainPID nodelet); [ $p != ${pid} ] && [ $p != 0 ] && systemctl is-active nodelet`;
  await machine.until("systemd starts the agent again", isBack);
  await agent.untilReady(names);
  await machine.run("systemctl daemon-reload");
  await assertSame();
});

test("after a reboot every pod is back where it was, and none was refused", async () => {
  await machine.reboot();
  // Until the agent has looked at the runtime, it shows what it knew before the reboot, which was ready too.
  await machine.until("all pods run", "[ $(ctr --namespace k8s.io tasks list | grep -c RUNNING) -eq 6 ]");
  await agent.untilReady(names);
  await assertPlaced();
  await assertSlices();
  const answer = JSON.parse(await machine.run("/opt/nodelet/bin/nodelet resources -o json")) as {
    readonly nodes: readonly { readonly exclusiveCpus?: string; readonly freeCpus?: string }[];
  };
  assert.deepEqual(
    answer.nodes.map(({ exclusiveCpus, freeCpus }) => [exclusiveCpus, freeCpus]),
    [
      ["2-3", ""],
      ["4-7", ""],
    ],
  );
});

test("what a pod leaves goes back to everybody, and to the next", async () => {
  await agent.removeStaticPod("right");
  await agent.untilReady(["left-vm", "shared-vm"]);
  await machine.until("the CPUs are shared again", `${await pinnedOf("shared-vm", "burstable")} | grep -qx 0-1,4-7`);
  await agent.putStaticPod(aligned("next", "2", "64Mi"));
  await agent.untilReady(["left-vm", "next-vm", "shared-vm"]);
  assert.deepEqual(await placed("next-vm", "guaranteed"), { pinned: "4-5", nodes: "1", cpus: "4-5", mems: "1" });
});

test("a CPU that nobody owns may go and come; a container keeps its own, and one it owns is not taken for free", async () => {
  const before = await agent.tasks();
  const online = (cpu: number, how: 0 | 1): Promise<string> =>
    machine.run(`echo ${how} > /sys/devices/system/cpu/cpu${cpu}/online`);
  const ready = ["left-vm", "next-vm", "shared-vm"];
  await online(7, 0);
  await machine.run("systemctl restart nodelet");
  await agent.untilReady(ready);
  await machine.until("the others have what is left", `${await pinnedOf("shared-vm", "burstable")} | grep -qx 0-1,6`);
  await online(7, 1);
  await machine.run("systemctl restart nodelet");
  await agent.untilReady(ready);
  await machine.until("it is shared again", `${await pinnedOf("shared-vm", "burstable")} | grep -qx 0-1,6-7`);
  assert.deepEqual(await placed("left-vm", "guaranteed"), { pinned: "2-3", nodes: "0", cpus: "2-3", mems: "0" });
  assert.deepEqual(await agent.tasks(), before);
});

async function assertPlaced(): Promise<void> {
  assert.deepEqual(await placed("left-vm", "guaranteed"), { pinned: "2-3", nodes: "0", cpus: "2-3", mems: "0" });
  assert.deepEqual(await placed("right-vm", "guaranteed"), { pinned: "4-7", nodes: "1", cpus: "4-7", mems: "1" });
  await machine.until("others are off their CPUs", `${await pinnedOf("shared-vm", "burstable")} | grep -qx 0-1`);
  assert.equal((await placed("shared-vm", "burstable")).nodes, "0-1");
}

async function assertSlices(): Promise<void> {
  const slices = await readSlices(machine);
  const left = slices.get(await sliceOf("left-vm", "guaranteed"));
  const right = slices.get(await sliceOf("right-vm", "guaranteed"));
  assert.deepEqual([left?.["cpu.max"], left?.["memory.max"]], ["max 100000", String(64 * mebibyte)]);
  assert.deepEqual([right?.["cpu.max"], right?.["memory.max"]], ["max 100000", String(96 * mebibyte)]);
  const totalKb = Number(await machine.run("awk '/MemTotal/ { print $2 }' /proc/meminfo"));
  assert.equal(slices.get("kubepods.slice")?.["memory.max"], String(totalKb * 1024 - 156 * mebibyte));
}

async function placed(name: string, tier: Parameters<typeof podSlice>[1]): Promise<Placed> {
  const scope = await scopeOf(name, tier);
  const ofProcess = (field: string): string =>
    `awk '/^${field}:/ { print $2 }' /proc/$(head -n 1 $s/cgroup.procs)/status`;
  const script = `s=${scope}; ${ofProcess("Cpus_allowed_list")}; ${ofProcess("Mems_allowed_list")}; cat $s/cpuset.cpus; cat $s/cpuset.mems`;
  const [pinned = "", nodes = "", cpus = "", mems = ""] = (await machine.run(script)).split("\n");
  return { pinned, nodes, cpus, mems };
}

async function pinnedOf(name: string, tier: Parameters<typeof podSlice>[1]): Promise<string> {
  return `cat ${await scopeOf(name, tier)}/cpuset.cpus.effective`;
}

async function scopeOf(name: string, tier: Parameters<typeof podSlice>[1]): Promise<string> {
  const pod = (await agent.pods()).get(name);
  const id = pod?.status?.containerStatuses?.[0]?.containerID?.split("//")[1];
  if (id === undefined) throw new Error(`${name} has no container`);
  const above = tier === "guaranteed" ? "" : `kubepods-${tier}.slice/`;
  return `/sys/fs/cgroup/kubepods.slice/${above}${await sliceOf(name, tier)}/cri-containerd-${id}.scope`;
}

async function sliceOf(name: string, tier: Parameters<typeof podSlice>[1]): Promise<string> {
  const uid = (await agent.pods()).get(name)?.metadata?.uid;
  if (uid === undefined) throw new Error(`the agent shows no pod ${name}`);
  return podSlice(uid, tier);
}

async function stateFiles(): Promise<string> {
  return await machine.run("cd /var/lib/kubelet && cat cpu_manager_state memory_manager_state");
}

async function properties(unit: string): Promise<Readonly<Record<string, string>>> {
  const shown = await machine.run(`systemctl show -p MemoryMax -p CPUQuotaPerSecUSec -p ActiveState ${unit}`);
  return Object.fromEntries(shown.split("\n").map((line) => line.split("=") as [string, string]));
}
