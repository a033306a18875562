// A machine that runs out of memory as a whole, and containers that do for themselves, on cgroup v2.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Event } from "../../src/ground/model/index.ts";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { GuestApi } from "./machine/guest-api.ts";
import { VirtualMachine } from "./machine/machine.ts";

let machine: VirtualMachine;
let agent: GuestAgent;
let api: GuestApi;
before(async () => {
  machine = await VirtualMachine.start({ name: "oom", swapMb: 16 });
  // The kernel is to act here, not the agent.
  const config = {
    evictionHard: { "memory.available": "0%" },
    enforceNodeAllocatable: ["none"],
    singleProcessOOMKill: true,
  };
  agent = await GuestAgent.start(machine, { api: true, config });
  api = await GuestApi.open(machine);
  await agent.putStaticPods([busyboxPod("idle", idleScript)]);
  await agent.untilReady(["idle-vm"]);
});
after(() => machine?.[Symbol.asyncDispose]());

const events = async (reason: string): Promise<readonly Event[]> =>
  (await api.list<Event>("/api/v1/namespaces/default/events")).filter((event) => event.reason === reason);

async function eventually(reason: string): Promise<readonly Event[]> {
  for (let tries = 0; tries < 120; tries++) {
    const found = await events(reason);
    if (found.length > 0) return found;
    await machine.run("sleep 1");
  }
  throw new Error(`no event ${reason}; the agent says:\n${await agent.log(40)}`);
}

test("a container of which a child was killed goes on, and an event tells of it", async () => {
  const resources = { limits: { memory: "24Mi" } };
  await agent.putStaticPod(busyboxPod("child", "tail /dev/zero; sleep 100000", { resources }));
  const [event] = await eventually("OOMKilling");
  assert.match(event?.message ?? "", /Process tail \(pid \d+\) of container main was killed because memory ran out/);
  assert.equal((await agent.pods()).get("child-vm")?.status?.containerStatuses?.[0]?.restartCount, 0);
  assert.deepEqual(await events("SystemOOM"), [], "the machine had enough");
});

test("a machine without memory: an event of the Node names the process, and pods go on", async () => {
  const before = (await agent.tasks()).size;
  // In a unit of its own: systemd stops the unit of which a process was killed.
  await machine.attempt("systemd-run --quiet --wait --collect --property=OOMScoreAdjust=1000 tail /dev/zero");
  const [event] = await eventually("SystemOOM");
  assert.equal(event?.involvedObject.kind, "Node");
  assert.match(event?.message ?? "", /^System OOM encountered, victim process: tail, pid: \d+$/);
  assert.equal((await agent.tasks()).size, before);
  const metrics = await machine.run("curl -sf http://127.0.0.1:10255/metrics | grep ^nodelet_oom_kills_total");
  assert.match(metrics, /nodelet_oom_kills_total\{of="machine"\} [1-9]/);
});

test("an agent that starts anew does not tell of the same again", async () => {
  const count = async (): Promise<number> =>
    (await events("SystemOOM")).reduce((sum, event) => sum + (event.count ?? 1), 0);
  const before = await count();
  await machine.run("systemctl restart nodelet");
  await agent.untilReady(["child-vm", "idle-vm"]);
  assert.equal(await count(), before);
});
