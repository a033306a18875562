// Memory on cgroup v2: swap that is shared out, memory kept for pods and their classes; and where processes are put.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { GuestApi } from "./machine/guest-api.ts";
import { VirtualMachine } from "./machine/machine.ts";

const mebibyte = 2 ** 20;
const reservedMb = 128;
const config = {
  featureGates: { MemoryQoS: true, QOSReserved: true },
  memorySwap: { swapBehavior: "LimitedSwap" },
  qosReserved: { memory: "50%" },
  systemReserved: { memory: `${reservedMb}Mi`, cpu: "100m" },
  enforceNodeAllocatable: ["pods", "system-reserved"],
  systemReservedCgroup: "/reserved.slice",
  cgroupRoot: "/",
  kubeletCgroups: "/agent-of-pods",
  systemCgroups: "/nobodys",
};
const requests = (request: number, limit: number) => ({
  resources: {
    requests: { cpu: "50m", memory: `${request}Mi` },
    limits: { cpu: "100m", memory: `${limit}Mi` },
  },
});
const guaranteedPod = busyboxPod("guaranteed", idleScript, {
  resources: { requests: { cpu: "50m", memory: "64Mi" }, limits: { cpu: "50m", memory: "64Mi" } },
});
const burstablePod = busyboxPod("burstable", idleScript, requests(32, 96));
const openPod = busyboxPod("open", idleScript, { resources: { requests: { cpu: "50m", memory: "16Mi" } } });
const bestEffortPod = busyboxPod("best-effort", idleScript);
const names = ["best-effort", "burstable", "guaranteed", "open"];

let machine: VirtualMachine;
let agent: GuestAgent;
let memoryBytes: number;
let swapBytes: number;
before(async () => {
  machine = await VirtualMachine.start({ name: "memory", swapMb: 512 });
  // A slice in which nothing runs is there only while somebody wants it.
  const reserved =
    "[Unit]\nDescription=Reserved for the system\n[Slice]\nMemoryAccounting=yes\nCPUAccounting=yes\nTasksAccounting=yes\n";
  await machine.putFile("/etc/systemd/system/reserved.slice", reserved);
  await machine.run("systemctl daemon-reload && systemctl start reserved.slice");
  agent = await GuestAgent.start(machine, { api: true, config });
  const totals = await machine.run("awk '/^(MemTotal|SwapTotal)/ { print $2 * 1024 }' /proc/meminfo");
  [memoryBytes = 0, swapBytes = 0] = totals.split("\n").map(Number);
  const api = await GuestApi.open(machine);
  await api.createPods([guaranteedPod, burstablePod, openPod, bestEffortPod].map(onThisNode));
  await agent.untilReady(names);
});
after(() => machine?.[Symbol.asyncDispose]());

test("swap is shared out by the request of memory, to Burstable pods alone", async () => {
  assert.ok(swapBytes > 0);
  const share = (requestMb: number): string =>
    String(pages(Math.trunc(((requestMb * mebibyte) / memoryBytes) * swapBytes)));
  const swap = async (name: string): Promise<string> => (await containerFiles(name))["memory.swap.max"] ?? "";
  assert.equal(await swap("guaranteed"), "0");
  assert.equal(await swap("best-effort"), "0");
  assert.equal(await swap("burstable"), share(32));
  assert.equal(await swap("open"), share(16));
});

test("the Node tells how much swap there is", async () => {
  const node = JSON.parse(await machine.run("node /root/guest-api.cjs list /api/v1/nodes/vm")) as {
    readonly status: { readonly nodeInfo: { readonly swap?: { readonly capacity?: number } } };
  };
  assert.equal(node.status.nodeInfo.swap?.capacity, swapBytes);
});

test("requests are kept for containers, and their growth is slowed before their limit", async () => {
  const high = (request: number, ceiling: number): string => String(pages(request + (ceiling - request) * 0.9));
  const protection = async (name: string): Promise<readonly (string | undefined)[]> => {
    const files = await containerFiles(name);
    return [files["memory.min"], files["memory.high"], files["memory.max"]];
  };
  const limit = memoryBytes - reservedMb * mebibyte;
  assert.deepEqual(await protection("guaranteed"), [String(64 * mebibyte), "max", String(64 * mebibyte)]);
  const burstable = [String(32 * mebibyte), high(32 * mebibyte, 96 * mebibyte), String(96 * mebibyte)];
  assert.deepEqual(await protection("burstable"), burstable);
  assert.deepEqual(await protection("open"), [String(16 * mebibyte), high(16 * mebibyte, limit), "max"]);
  assert.deepEqual(await protection("best-effort"), ["0", "max", "max"], "as in the kubelet: no request, no limit");
});

test("and for pods, their classes and what is reserved; lower classes get what the others leave", async () => {
  await assertClasses();
  assert.equal(await read("/reserved.slice/memory.min"), String(reservedMb * mebibyte));
  assert.equal(await read("/reserved.slice/memory.max"), String(reservedMb * mebibyte));
  const shown = await machine.run("systemctl show -p MemoryMax -p MemoryMin kubepods-besteffort.slice");
  assert.deepEqual(shown.split("\n").sort(), [`MemoryMax=${limitOfBestEffort()}`, "MemoryMin=0"]);
});

test("daemon-reload and a restart of the agent change none of it", async () => {
  const before = new Map<string, object>();
  for (const name of names) before.set(name, await containerFiles(name));
  const assertSame = async (): Promise<void> => {
    for (const name of names) assert.deepEqual(await containerFiles(name), before.get(name), name);
    await assertClasses();
  };
  await machine.run("systemctl daemon-reload");
  await assertSame();
  await machine.run("systemctl restart nodelet");
  await agent.untilReady(names);
  await assertSame();
});

test("the agent is in its cgroup, still systemd's service; processes that are in none are moved to theirs", async () => {
  const pid = await agent.property("MainPID");
  assert.equal(await machine.run(`cat /proc/${pid}/cgroup`), "0::/agent-of-pods");
  assert.equal(await agent.property("ActiveState"), "active");
  await machine.run(
    "nohup sleep 100000 > /dev/null 2>&1 & echo $! > /run/stray; echo $! > /sys/fs/cgroup/cgroup.procs",
  );
  assert.equal(await machine.run("cat /proc/$(cat /run/stray)/cgroup"), "0::/");
  await machine.until("the process is moved", "grep -qx 0::/nobodys /proc/$(cat /run/stray)/cgroup");
  assert.equal(await machine.run("cat /proc/1/cgroup"), "0::/init.scope");
  const { node } = JSON.parse(await machine.run("curl -sSf --max-time 60 http://127.0.0.1:10255/stats/summary")) as {
    readonly node: { readonly systemContainers: readonly { readonly name: string }[] };
  };
  const shown = node.systemContainers.map(({ name }) => name);
  for (const name of ["kubelet", "misc", "pods"]) assert.ok(shown.includes(name), shown.join());
  await machine.run("systemctl stop nodelet");
  assert.equal((await machine.attempt(`test -e /proc/${pid}`)).code, 1, "systemd ends it wherever it is");
  await machine.run("systemctl start nodelet");
  await agent.untilReady(names);
});

async function assertClasses(): Promise<void> {
  const burstableMin = 48 * mebibyte;
  assert.equal(await read("/kubepods.slice/memory.min"), String(burstableMin + 64 * mebibyte));
  const burstable = "/kubepods.slice/kubepods-burstable.slice";
  assert.equal(await read(`${burstable}/memory.min`), String(burstableMin));
  assert.equal(await read(`${burstable}/memory.max`), String(memoryBytes - (reservedMb + 32) * mebibyte));
  const bestEffort = "/kubepods.slice/kubepods-besteffort.slice";
  assert.equal(await read(`${bestEffort}/memory.max`), String(limitOfBestEffort()));
}

function limitOfBestEffort(): number {
  // Half of 64 and 48 MiB.
  return memoryBytes - (reservedMb + 32 + 24) * mebibyte;
}

async function containerFiles(name: string): Promise<Readonly<Record<string, string>>> {
  const pod = (await agent.pods()).get(name);
  const id = pod?.status?.containerStatuses?.[0]?.containerID?.split("//")[1];
  const files = ["memory.min", "memory.high", "memory.max", "memory.swap.max"];
  const script = `cd "$(find /sys/fs/cgroup/kubepods.slice -type d -name 'cri-containerd-${id}.scope')" && cat ${files.join(" ")}`;
  const values = (await machine.run(script)).split("\n");
  return Object.fromEntries(files.map((file, at) => [file, values[at] ?? ""]));
}

async function read(file: string): Promise<string> {
  return await machine.run(`cat /sys/fs/cgroup${file}`);
}

function onThisNode(pod: ReturnType<typeof busyboxPod>): ReturnType<typeof busyboxPod> {
  return { ...pod, spec: { ...pod.spec, nodeName: "vm" } } as ReturnType<typeof busyboxPod>;
}

function pages(bytes: number): number {
  return Math.floor(bytes / 4096) * 4096;
}
