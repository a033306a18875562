// The machine itself: what other files of this folder rely on.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { VirtualMachine } from "./machine/machine.ts";

let machine: VirtualMachine;
before(async () => {
  machine = await VirtualMachine.start({
    name: "hardware",
    numa: { threadsPerCore: 2 },
    extraDisksMb: [64],
    swapMb: 300,
  });
});
after(() => machine?.[Symbol.asyncDispose]());

test("systemd is its init, with logind, cgroup v2 and pressure figures", async () => {
  assert.equal(await machine.run("cat /proc/1/comm"), "systemd");
  assert.equal(await machine.run("stat -f -c %T /sys/fs/cgroup"), "cgroup2fs");
  assert.match(await machine.run("cat /proc/pressure/memory"), /^some avg10=/);
  await machine.until("boot is over", "systemctl is-system-running");
  assert.equal(await machine.run("systemctl is-active systemd-logind dbus containerd"), "active\nactive\nactive");
});

test("it has swap, and the disk that was asked for", async () => {
  assert.equal(await machine.run("awk '/SwapTotal/ { print int($2 / 1024 + 1) }' /proc/meminfo"), "300");
  assert.equal(await machine.run("cat /sys/block/vdd/size"), String((64 * 2 ** 20) / 512));
});

test("two memory nodes, each with two cores of two threads", async () => {
  const nodes = "cd /sys/devices/system/node && cat node0/cpulist node1/cpulist node0/distance";
  assert.equal(await machine.run(nodes), "0-3\n4-7\n10 20");
  const siblings = "cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
  assert.equal(await machine.run(siblings), "0-1");
});

test("a command's output and status come back, and its input arrives whole", async () => {
  const input = Buffer.alloc(3_000_000, "nodelet ");
  assert.equal(await machine.run("wc -c", { input }), "3000000");
  assert.deepEqual(await machine.attempt("echo out; echo err >&2; exit 7"), { code: 7, output: "out\nerr\n" });
});

test("the network ends at the machine", async () => {
  const { code } = await machine.attempt("timeout 5 bash -c 'echo > /dev/tcp/10.0.2.2/22' 2>&1");
  assert.notEqual(code, 0);
});
