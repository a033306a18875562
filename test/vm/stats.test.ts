// What is measured on cgroup v2, and how a container that takes too much memory ends.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";

interface Pressure {
  readonly full: { readonly total: number; readonly avg10: number };
  readonly some: { readonly total: number; readonly avg10: number };
}
interface Measured {
  readonly cpu: { readonly usageCoreNanoSeconds: number; readonly usageNanoCores: number; readonly psi: Pressure };
  readonly memory: { readonly workingSetBytes: number; readonly rssBytes: number; readonly psi: Pressure };
  readonly io: { readonly psi: Pressure };
  readonly swap: { readonly swapUsageBytes: number; readonly swapAvailableBytes: number };
}
interface Summary {
  readonly node: Measured & { readonly systemContainers: readonly { readonly name: string }[] };
  readonly pods: readonly (Measured & {
    readonly podRef: { readonly name: string };
    readonly containers: readonly (Measured & { readonly name: string })[];
    readonly process_stats: { readonly process_count: number };
  })[];
}

const busyMb = 8;
const swapMb = 512;
let machine: VirtualMachine;
let agent: GuestAgent;
before(async () => {
  machine = await VirtualMachine.start({ name: "stats", swapMb });
  agent = await GuestAgent.start(machine);
  // Holds memory of its own and burns more of a processor than it may have.
  const script = `head -c ${busyMb * 2 ** 20} /dev/zero > /dev/shm/held; while :; do :; done`;
  await agent.putStaticPods([
    busyboxPod("busy", script, { resources: { limits: { cpu: "100m", memory: "300Mi" } } }),
    busyboxPod("idle", idleScript),
  ]);
  await agent.untilReady(["busy-vm", "idle-vm"]);
});
after(() => machine?.[Symbol.asyncDispose]());

test("/stats/summary has cpu, memory, swap and processes of the node, its pods and containers", async () => {
  const first = podOf(await summary(), "busy-vm");
  await machine.until("the busy pod has its memory", `${curl} | node -e '${memoryReached}'`);
  const { node, pods } = await summary();
  assert.deepEqual(pods.map(({ podRef }) => podRef.name).sort(), ["busy-vm", "idle-vm"]);
  const busy = podOf({ node, pods }, "busy-vm");
  assert.ok(busy.cpu.usageCoreNanoSeconds > first.cpu.usageCoreNanoSeconds);
  assert.ok(node.cpu.usageCoreNanoSeconds > busy.cpu.usageCoreNanoSeconds);
  assert.ok(node.memory.workingSetBytes > busy.memory.workingSetBytes);
  assert.ok(busy.process_stats.process_count >= 1);
  const [container] = busy.containers;
  assert.ok(container !== undefined && container.memory.workingSetBytes >= busyMb * 2 ** 20);
  assert.ok(container.memory.workingSetBytes <= busy.memory.workingSetBytes);
  assert.equal(container.swap.swapUsageBytes, 0);
  assert.ok(node.systemContainers.some(({ name }) => name === "pods"));
});

test("pressure figures are there for node, pod and container, and show who is held back", async () => {
  const { node, pods } = await summary();
  const busy = podOf({ node, pods }, "busy-vm");
  const idle = podOf({ node, pods }, "idle-vm");
  for (const measured of [node, busy, idle, ...busy.containers, ...idle.containers]) {
    for (const { psi } of [measured.cpu, measured.memory, measured.io]) {
      assert.equal(typeof psi.some.total, "number");
      assert.equal(typeof psi.full.avg10, "number");
    }
  }
  // Held to a tenth of a processor, it waits most of the time.
  assert.ok(busy.cpu.psi.some.total > 10 * idle.cpu.psi.some.total, JSON.stringify([busy.cpu.psi, idle.cpu.psi]));
});

test("the machine's swap is told, and no container may use it unless the node shares it out", async () => {
  const { node } = await summary();
  assert.ok(node.swap.swapAvailableBytes > 0 && node.swap.swapAvailableBytes <= swapMb * 2 ** 20);
  for (const [name, pod] of await agent.pods()) {
    const id = pod.status?.containerStatuses?.[0]?.containerID?.replace("containerd://", "");
    const file = "memory.swap.max";
    const limit = `cat "$(find /sys/fs/cgroup/kubepods.slice -type d -name 'cri-containerd-${id}.scope')/${file}"`;
    assert.equal(await machine.run(limit), "0", `${name}: ${file}`);
  }
});

test("a container that takes more memory than its limit ends as OOMKilled, swap or not", async () => {
  const greedy = busyboxPod("greedy", "tail /dev/zero", {
    resources: { limits: { memory: "24Mi" } },
    spec: { restartPolicy: "Never" },
  });
  await agent.putStaticPod(greedy);
  const isOver = `curl -s --unix-socket /var/lib/kubelet/nodelet.sock http://agent/pods | grep -q '"reason":"OOMKilled"'`;
  await machine.until("the pod is over", isOver);
  const pod = (await agent.pods()).get("greedy-vm");
  const ended = pod?.status?.containerStatuses?.[0]?.state?.terminated;
  assert.equal(pod?.status?.phase, "Failed");
  assert.equal(ended?.reason, "OOMKilled");
  assert.equal(ended?.exitCode, 137);
  // Nobody else was touched.
  for (const name of ["busy-vm", "idle-vm"]) {
    assert.equal((await agent.pods()).get(name)?.status?.containerStatuses?.[0]?.restartCount, 0);
  }
});

const curl = "curl -sSf http://127.0.0.1:10255/stats/summary";
const memoryReached =
  'const s = JSON.parse(require("fs").readFileSync(0, "utf8")); ' +
  'const p = s.pods.find((pod) => pod.podRef.name === "busy-vm"); ' +
  `process.exit(p && p.containers[0]?.memory?.workingSetBytes >= ${busyMb * 2 ** 20} ? 0 : 1)`;

async function summary(): Promise<Summary> {
  return JSON.parse(await machine.run(curl));
}

function podOf({ pods }: Summary, name: string): Summary["pods"][number] {
  const pod = pods.find(({ podRef }) => podRef.name === name);
  if (pod === undefined) throw new Error(`/stats/summary has no pod ${name}`);
  return pod;
}
