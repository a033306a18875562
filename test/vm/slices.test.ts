// Limits of slices as the kernel enforces them, with systemd as the owner of the tree.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";
import { progress } from "./machine/progress.ts";
import { podSlice, podUnits, readSlices, type SliceFiles } from "./machine/slices.ts";

const mebibyte = 2 ** 20;
const reservedMb = 200;
const podPidsLimit = 300;

const guaranteed = busyboxPod("guaranteed", idleScript, {
  resources: { requests: { cpu: "200m", memory: "64Mi" }, limits: { cpu: "200m", memory: "64Mi" } },
});
const burstable = busyboxPod("burstable", idleScript, {
  resources: { requests: { cpu: "100m", memory: "32Mi" }, limits: { cpu: "500m", memory: "96Mi" } },
});
const bestEffort = busyboxPod("best-effort", idleScript);
/** Comes when systemd or its bus are not at their best. */
const later = { ...guaranteed, metadata: { ...guaranteed.metadata, name: "later" } };
const names = ["best-effort-vm", "burstable-vm", "guaranteed-vm"];

let machine: VirtualMachine;
let agent: GuestAgent;
before(async () => {
  machine = await VirtualMachine.start({ name: "slices" });
  agent = await GuestAgent.start(machine, {
    config: { podPidsLimit, systemReserved: { memory: `${reservedMb}Mi`, cpu: "200m", pid: "1000" } },
  });
});
after(() => machine?.[Symbol.asyncDispose]());

test("right after the first container every slice has its limits", async () => {
  await agent.putStaticPod(guaranteed);
  await agent.untilReady(["guaranteed-vm"]);
  const slices = await readSlices(machine);
  assert.deepEqual(slices.get(await sliceOf("guaranteed-vm", "guaranteed")), await guaranteedFiles());
  assertTop(slices, await topFiles());
});

test("each tier and each pod has what its requests and limits give it", async () => {
  await agent.putStaticPods([burstable, bestEffort]);
  await agent.untilReady(names);
  await assertAll();
});

test("daemon-reload changes nothing", async () => {
  await machine.run("systemctl daemon-reload");
  await assertAll();
  // The second one finds units that were realised by the first.
  await machine.run("systemctl daemon-reload && systemctl daemon-reload");
  await assertAll();
});

test("a stop and start of the agent changes no slice and no container", async () => {
  const before = await agent.tasks();
  await machine.run("systemctl restart nodelet");
  await agent.untilReady(names);
  assert.deepEqual(await agent.tasks(), before);
  await assertAll();
});

test("kill -9 of the agent changes no slice and no container", async () => {
  const before = await agent.tasks();
  const pid = await agent.property("MainPID");
  await machine.run(`kill -9 ${pid}`);
  const isBack = `p=$(systemctl show --value -p MainPID nodelet); [ $p != ${pid} ] && [ $p != 0 ] && systemctl is-active nodelet`;
  await machine.until("systemd starts the agent again", isBack);
  await agent.untilReady(names);
  assert.deepEqual(await agent.tasks(), before);
  await assertAll();
});

test("the burstable tier follows its pods as they come and go", async () => {
  await agent.putStaticPod(
    busyboxPod("more", idleScript, { resources: { requests: { cpu: "700m", memory: "16Mi" } } }),
  );
  await agent.untilReady([...names, "more-vm"]);
  // 100m and 700m are 819 shares.
  assert.equal((await readSlices(machine)).get("kubepods-burstable.slice")?.["cpu.weight"], "32");
  const slice = await sliceOf("more-vm", "burstable");
  await agent.removeStaticPod("more");
  await untilGone(slice);
  await agent.untilReady(names);
  await assertAll();
});

test("a bus that is killed and a systemd that is replaced by itself change no slice, and new pods get theirs", async () => {
  const before = await agent.tasks();
  await machine.run("kill -9 $(systemctl show --value -p MainPID dbus)");
  await agent.putStaticPod(later);
  await agent.untilReady([...names, "later-vm"]);
  await assertLater();
  await machine.run("systemctl daemon-reexec");
  await assertLater();
  const slice = await sliceOf("later-vm", "guaranteed");
  await agent.removeStaticPod("later");
  await untilGone(slice);
  await agent.untilReady(names);
  assert.deepEqual(await agent.tasks(), before);
  await assertAll();
  assert.equal(await agent.property("NRestarts"), "1", "restarted only when it was killed, above");
});

test("an agent that starts before the bus does keeps what runs, and starts pods once the bus is there", async () => {
  const before = await agent.tasks();
  await machine.run("systemctl stop nodelet && systemctl stop dbus.socket dbus.service && systemctl start nodelet");
  await agent.untilReady(names);
  await assertAll();
  await agent.putStaticPod(later);
  await machine.run("systemctl start dbus.socket dbus.service");
  await agent.untilReady([...names, "later-vm"]);
  await assertLater();
  const slice = await sliceOf("later-vm", "guaranteed");
  await agent.removeStaticPod("later");
  await untilGone(slice);
  await agent.untilReady(names);
  assert.deepEqual(await agent.tasks(), before);
  await assertAll();
});

test("limits changed behind the agent's back come back", async () => {
  const slice = await sliceOf("burstable-vm", "burstable");
  const path = `/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/${slice}`;
  await machine.run(`echo max > ${path}/memory.max; systemctl set-property --runtime ${slice} CPUWeight=77`);
  await machine.run("systemctl restart nodelet");
  await agent.untilReady(names);
  await machine.until(
    "limits are back",
    `[ $(cat ${path}/memory.max) = ${96 * mebibyte} ] && [ $(cat ${path}/cpu.weight) = 4 ]`,
  );
  await assertAll();
});

test("pods that are gone leave no unit and no slice", async () => {
  for (const name of ["guaranteed", "burstable", "best-effort"]) await agent.removeStaticPod(name);
  await agent.untilReady([]);
  await machine.until("no slice of a pod is left", "! find /sys/fs/cgroup/kubepods.slice -type d | grep pod.*-pod");
  const tiers = ["kubepods-besteffort.slice", "kubepods-burstable.slice", "kubepods.slice"];
  assert.deepEqual([...(await podUnits(machine))].sort(), tiers);
});

async function assertAll(): Promise<void> {
  const slices = await readSlices(machine);
  try {
    assertTop(slices, await topFiles());
    assert.deepEqual(slices.get(await sliceOf("guaranteed-vm", "guaranteed")), await guaranteedFiles());
    assert.deepEqual(slices.get(await sliceOf("burstable-vm", "burstable")), {
      "memory.max": String(96 * mebibyte),
      "memory.min": "0",
      "cpu.max": "50000 100000",
      "cpu.weight": "4",
      "pids.max": String(podPidsLimit),
    });
    assert.deepEqual(slices.get(await sliceOf("best-effort-vm", "besteffort")), {
      "memory.max": "max",
      "memory.min": "0",
      "cpu.max": "max 100000",
      "cpu.weight": "1",
      "pids.max": String(podPidsLimit),
    });
    // 100m are 102 shares, and the least of all for who asks for nothing.
    assert.equal(slices.get("kubepods-burstable.slice")?.["cpu.weight"], "4");
    assert.equal(slices.get("kubepods-besteffort.slice")?.["cpu.weight"], "1");
    assert.equal(slices.size, 6);
  } catch (error) {
    progress(JSON.stringify(Object.fromEntries(slices), undefined, 1));
    throw error;
  }
}

async function assertLater(): Promise<void> {
  const slices = await readSlices(machine);
  assert.deepEqual(slices.get(await sliceOf("later-vm", "guaranteed")), await guaranteedFiles());
  assertTop(slices, await topFiles());
}

async function untilGone(slice: string): Promise<void> {
  await machine.until("the slice is gone", `! systemctl list-units --all --plain --no-legend | grep -F '${slice}'`);
}

async function guaranteedFiles(): Promise<SliceFiles> {
  return {
    "memory.max": String(64 * mebibyte),
    "memory.min": "0",
    "cpu.max": "20000 100000",
    "cpu.weight": "8",
    "pids.max": String(podPidsLimit),
  };
}

/** All pods together: what the machine has, less what is reserved. */
async function topFiles(): Promise<Partial<SliceFiles>> {
  const totalKb = Number(await machine.run("awk '/MemTotal/ { print $2 }' /proc/meminfo"));
  return { "memory.max": String(totalKb * 1024 - reservedMb * mebibyte), "cpu.weight": "71" };
}

function assertTop(slices: ReadonlyMap<string, SliceFiles>, expected: Partial<SliceFiles>): void {
  const { "memory.max": memory, "cpu.weight": weight, "pids.max": pids } = slices.get("kubepods.slice") ?? {};
  assert.deepEqual({ "memory.max": memory, "cpu.weight": weight }, expected);
  assert.match(pids ?? "", /^\d+$/);
}

async function sliceOf(name: string, tier: Parameters<typeof podSlice>[1]): Promise<string> {
  const pod = (await agent.pods()).get(name);
  const uid = pod?.metadata?.uid;
  if (uid === undefined) throw new Error(`the agent shows no pod ${name}`);
  return podSlice(uid, tier);
}
