// Ten pods, one after another, that take memory as fast as they can on cgroup v2, 100 MiB a second at the most: each is
// evicted, and the kernel has nobody to kill.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../../src/ground/model/index.ts";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";
import { progress } from "./machine/progress.ts";

const rounds = 10;
const podsMb = 900;
const keptMb = 400;
/**
 * Takes 20 MiB at a time, and waits for as long as makes that 100 MiB a second; writes down when it began and what it has.
 * Does not listen to SIGTERM. The file system is its own: a volume in memory ends where the agent lets it, before the
 * kernel has to kill. An emulated processor is slow at copying; the kernel hands out memory faster.
 */
const eat = `trap '' TERM
mkdir -p /memory && mount -t tmpfs -o size=2g tmpfs /memory
at() { read up rest < /proc/uptime; echo "\${up%.*}\${up#*.}"; }
began=$(at); held=0; echo "0 0" > /notes/$NAME
while :; do
  fallocate -l 20971520 /memory/$held && held=$((held + 20))
  took=$(($(at) - began)); echo "$held $took" >> /notes/$NAME
  test $took -ge $held || usleep $(((held - took) * 10000))
done`;

test(`${rounds} pods that eat up to 100 MiB a second are evicted before the kernel kills`, async () => {
  await using machine = await VirtualMachine.start({ name: "fast eater", memoryMb: 2048 });
  const memoryKb = Number(await machine.run("awk '/^MemTotal/ {print $2}' /proc/meminfo"));
  await machine.run("mkdir /notes");
  const agent = await GuestAgent.start(machine, {
    config: {
      enforceNodeAllocatable: ["pods"],
      kubeReserved: { memory: `${memoryKb - podsMb * 1024}Ki` },
      evictionHard: { "memory.available": `${keptMb}Mi` },
      evictionPressureTransitionPeriod: "1s",
    },
  });
  await agent.putStaticPod(busyboxPod("idle", idleScript));
  await agent.untilReady(["idle-vm"]);
  const rates: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const name = `eater${round}`;
    await agent.putStaticPod(eater(name));
    await agent.untilEvicted(`${name}-vm`);
    const kills = await machine.run("awk '/^oom_kill / {print $2}' /sys/fs/cgroup/kubepods.slice/memory.events");
    assert.equal(kills, "0", `${name}: the kernel killed`);
    await agent.removeStaticPod(name);
    await machine.until(
      "there is memory",
      `test $(cat /sys/fs/cgroup/kubepods.slice/memory.current) -lt ${100 * 2 ** 20}`,
    );
    const [held = 0, hundredths = 0] = (await machine.run(`tail -n 1 /notes/${name}`)).split(" ").map(Number);
    rates.push((held * 100) / hundredths);
    progress(`${name}: ${held} MiB in ${(hundredths / 100).toFixed(1)} s`);
  }
  progress(`MiB a second: ${rates.map((rate) => rate.toFixed()).join(", ")}`);
  assert.equal((await agent.pods()).get("idle-vm")?.status?.phase, "Running");
  assert.equal((await agent.restartCounts()).get("idle-vm"), 0);
});

function eater(name: string): Pod {
  const pod = busyboxPod(name, eat);
  const [main] = pod.spec?.containers ?? [];
  if (main === undefined) throw new Error("a pod has a container");
  const container = {
    ...main,
    env: [{ name: "NAME", value: name }],
    // Under pressure, which lasts a while longer than its cause, pods that ask for nothing are refused.
    resources: { requests: { memory: "1Mi" } },
    volumeMounts: [{ name: "notes", mountPath: "/notes" }],
    securityContext: { privileged: true },
  };
  const volumes = [{ name: "notes", hostPath: { path: "/notes" } }];
  return { ...pod, spec: { ...pod.spec, restartPolicy: "Never", containers: [container], volumes } } as Pod;
}
