// docs/nodelet.service as it is shipped: ready when it is, restarted when it hangs, and no container notices.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";

const names = ["one-vm", "two-vm"];
/** Shorter than the unit's minute, and long for an emulated agent. */
const watchdogSeconds = 30;

let machine: VirtualMachine;
let agent: GuestAgent;
before(async () => {
  machine = await VirtualMachine.start({ name: "service" });
  agent = await GuestAgent.start(machine, { api: true, service: [`WatchdogSec=${watchdogSeconds}s`] });
});
after(() => machine?.[Symbol.asyncDispose]());

test("systemd calls it started when the agent says so, and the agent answers then", async () => {
  assert.equal(await agent.property("Type"), "notify");
  await machine.until("it is well", `[ "$(curl -s http://127.0.0.1:10248/healthz)" = ok ]`);
  // The start had to wait for the word of the agent: before it there is no answer.
  await machine.run("systemctl stop nodelet");
  const watched = await machine.run(
    "systemctl start --no-block nodelet; while :; do s=$(systemctl show --value -p ActiveState nodelet); " +
      'h=$(curl -s --max-time 20 --unix-socket /var/lib/kubelet/nodelet.sock http://agent/healthz); echo "$s $h"; [ $s != active ] || break; done',
  );
  const lines = watched.split("\n");
  assert.match(lines[0] ?? "", /^activating/);
  assert.equal(lines.at(-1), "active ok");
});

test("a stop and start of the unit keeps containers", async () => {
  await agent.putStaticPods([busyboxPod("one", idleScript), busyboxPod("two", idleScript)]);
  await agent.untilReady(names);
  const before = await agent.tasks();
  assert.equal(before.size, 4, "two sandboxes, two containers");
  await machine.run("systemctl stop nodelet");
  assert.deepEqual(await agent.tasks(), before);
  await machine.run("systemctl start nodelet");
  await agent.untilReady(names);
  assert.deepEqual(await agent.tasks(), before);
});

test("the watchdog leaves an agent alone that is well", async () => {
  const since = "systemctl show --value -p ActiveEnterTimestampMonotonic nodelet";
  const isOld = `[ $(( $(cut -d. -f1 /proc/uptime) - $(${since}) / 1000000 )) -gt ${1.5 * watchdogSeconds} ]`;
  await machine.until("it runs for longer than the watchdog waits", isOld);
  assert.equal(await agent.property("NRestarts"), "0");
});

test("the watchdog restarts an agent that is stuck, and no container notices", async () => {
  const before = await agent.tasks();
  const pid = await agent.property("MainPID");
  await machine.run(`kill -STOP ${pid}`);
  const isBack = `p=$(systemctl show --value -p MainPID nodelet); systemctl status nodelet --no-pager; [ $p != ${pid} ] && [ $p != 0 ] && systemctl -q is-active nodelet`;
  await machine.until("systemd starts another agent", isBack);
  assert.match(await machine.run("journalctl -u nodelet --no-pager -o cat"), /Watchdog timeout/);
  await agent.untilReady(names);
  assert.deepEqual(await agent.tasks(), before);
  await assertRestarts(0);
});

test("after a reboot every pod comes back, once", async () => {
  await machine.reboot();
  // Until the agent has looked at the runtime, it shows what it knew before the reboot, which was ready too.
  await machine.until("both pods run", "[ $(ctr --namespace k8s.io tasks list | grep -c RUNNING) -eq 4 ]");
  await agent.untilReady(names);
  await assertRestarts(1);
  assert.equal((await agent.tasks()).size, 4, "two sandboxes, two containers");
  assert.equal(await agent.property("NRestarts"), "0", "the agent itself started once");
});

async function assertRestarts(expected: number): Promise<void> {
  const pods = await agent.pods();
  for (const name of names) {
    assert.equal(pods.get(name)?.status?.containerStatuses?.[0]?.restartCount, expected, name);
  }
}
