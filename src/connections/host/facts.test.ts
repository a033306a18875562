import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../ground/base/index.ts";
import {
  ensureDirectory,
  isAppArmorEnabled,
  isSelinuxEnabled,
  mountOf,
  readCgroupLayout,
  readContainerFileLabel,
  readMachine,
  readMounts,
  readSwaps,
} from "./index.ts";
import { tuneKernel } from "./kernel-settings.ts";
import { countCpus } from "./machine.ts";
import { setOwnOomScore } from "./oom-score.ts";

const roots: string[] = [];
after(() => {
  for (const root of roots) rmSync(root, { recursive: true, force: true });
});

/** A directory that looks like / of some machine. */
function machineWith(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "nodelet-host-"));
  roots.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const x86 = [0, 1, 2, 3]
  .map((cpu) => `processor\t: ${cpu}\nphysical id\t: ${cpu >> 1}\ncore id\t\t: ${0}\ncpu cores\t: 1\n`)
  .join("\n");
const arm = "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\nBogoMIPS\t: 50.00\n\nHardware\t: none\n";

for (const [name, text, expected] of [
  ["two sockets with hyper-threads", x86, { logical: 4, physicalCores: 2, sockets: 2 }],
  ["no topology given", arm, { logical: 2, physicalCores: 2, sockets: 1 }],
] as const) {
  test(`cpus: ${name}`, () => assert.deepEqual(countCpus(text), expected));
}

test("machine: ids, memory and names from their files", async () => {
  const root = machineWith({
    "proc/cpuinfo": x86,
    "proc/meminfo": "MemTotal:        2048 kB\nMemFree: 1 kB\nSwapTotal:       1024 kB\n",
    "var/lib/dbus/machine-id": "abc\n",
    "proc/device-tree/system-id": "uuid-1\0",
    "proc/sys/kernel/random/boot_id": "boot-1\n",
    "usr/lib/os-release": 'NAME=x\nPRETTY_NAME="Some OS 12"\nID=some\n',
  });
  const machine = await readMachine(root);
  assert.deepEqual(machine.cpus, { logical: 4, physicalCores: 2, sockets: 2 });
  assert.equal(machine.memoryBytes, 2_097_152);
  assert.equal(machine.swapBytes, 1_048_576);
  assert.equal(machine.machineId, "abc");
  assert.equal(machine.systemUuid, "uuid-1");
  assert.equal(machine.bootId, "boot-1");
  assert.equal(machine.osImage, "Some OS 12");
  assert.match(machine.kernelVersion, /^\d+\./);
});

for (const [name, files, expected] of [
  ["unquoted", { "etc/os-release": "PRETTY_NAME=Plain\n" }, "Plain"],
  ["single quotes", { "etc/os-release": "PRETTY_NAME='One'\n" }, "One"],
  ["no such line", { "etc/os-release": "NAME=x\n" }, "Linux"],
  ["unreadable", {}, "Unknown"],
] as const) {
  test(`os image: ${name}`, async () => {
    const root = machineWith({ "proc/cpuinfo": x86, "proc/meminfo": "", ...files });
    assert.equal((await readMachine(root)).osImage, expected);
  });
}

const noSwap = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
for (const [name, files, expected] of [
  ["none", { "proc/swaps": noSwap }, []],
  ["one partition", { "proc/swaps": `${noSwap}/dev/sda2 partition 1 0 -2\n` }, ["/dev/sda2"]],
  ["kernel without swap", {}, []],
] as const) {
  test(`swaps: ${name}`, async () => assert.deepEqual(await readSwaps(machineWith(files)), expected));
}

const line = (point: string, tags: string, type: string, superOptions = "rw") =>
  `36 35 98:0 / ${point} rw,noatime${tags} - ${type} src ${superOptions}\n`;

const mountsIn = (text: string) => readMounts(machineWith({ "proc/self/mountinfo": text }));

test("mountinfo: escaped names, optional tags, unknown lines", async () => {
  const [first, second, ...rest] = await mountsIn(
    `${line("/a\\040b\\134c", " shared:1 master:2", "ext4", "rw,errors=remount-ro")}broken\n${line("/b", "", "tmpfs")}`,
  );
  assert.equal(first?.mountPoint, "/a b\\c");
  assert.deepEqual(first?.propagation, { shared: true, slave: true });
  assert.deepEqual(first?.superOptions, ["rw", "errors=remount-ro"]);
  assert.deepEqual(second?.propagation, { shared: false, slave: false });
  assert.deepEqual(second?.options, ["rw", "noatime"]);
  assert.equal(rest.length, 0);
});

test("mountinfo: a table of any length is read with time for everybody else in between", async () => {
  const root = machineWith({ "proc/self/mountinfo": line("/x", "", "tmpfs").repeat(20_000) });
  /** The longest time without a turn of the event loop, as a part of the whole. */
  const longestPart = async (): Promise<number> => {
    const began = performance.now();
    let last = began;
    let longest = 0;
    const look = (): void => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    };
    const looks = setInterval(look, 1);
    const all = await readMounts(root);
    look();
    clearInterval(looks);
    assert.equal(all.length, 20_000);
    return longest / (performance.now() - began);
  };
  // Others on the machine may take the processor away for a while, but hardly each time; a read in one piece is one.
  const parts = [await longestPart(), await longestPart(), await longestPart(), await longestPart()];
  assert.ok(Math.min(...parts) < 0.5, `${parts} of the time without a turn of the event loop`);
});

const mounts = await mountsIn(
  line("/", "", "ext4") + line("/var", " shared:1", "ext4") + line("/var/lib", "", "xfs") + line("/var/lib", "", "nfs"),
);
for (const [path, type] of [
  ["/etc", "ext4"],
  ["/var", "ext4"],
  ["/variety", "ext4"],
  ["/var/lib/kubelet", "nfs"],
  ["/var/library", "ext4"],
] as const) {
  test(`the mount of ${path}`, () => assert.equal(mountOf(path, mounts)?.fsType, type));
}

test("the mounts of this process have a root", async () =>
  assert.equal(mountOf("/", await readMounts())?.mountPoint, "/"));

test("cgroups: version 2", async () => {
  const root = machineWith({
    "proc/self/mountinfo": line("/sys/fs/cgroup", " shared:4", "cgroup2"),
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
  });
  assert.deepEqual(await readCgroupLayout(root), {
    version: 2,
    mountPoint: "/sys/fs/cgroup",
    controllers: ["cpuset", "cpu", "io", "memory", "pids"],
  });
});

test("cgroups: version 1 with joint controllers, hybrid", async () => {
  const root = machineWith({
    "proc/self/mountinfo":
      line("/sys/fs/cgroup", "", "tmpfs") +
      line("/sys/fs/cgroup/cpu,cpuacct", "", "cgroup", "rw,cpu,cpuacct") +
      line("/sys/fs/cgroup/systemd", "", "cgroup", "rw,xattr,release_agent=/bin/x,name=systemd") +
      line("/elsewhere", "", "cgroup", "rw,cpu,cpuacct") +
      line("/sys/fs/cgroup/unified", "", "cgroup2"),
  });
  assert.deepEqual(await readCgroupLayout(root), {
    version: 1,
    mountPoints: new Map([
      ["cpu", "/sys/fs/cgroup/cpu,cpuacct"],
      ["cpuacct", "/sys/fs/cgroup/cpu,cpuacct"],
      ["name=systemd", "/sys/fs/cgroup/systemd"],
    ]),
    unifiedMountPoint: "/sys/fs/cgroup/unified",
  });
});

const enabled = "sys/module/apparmor/parameters/enabled";
for (const [name, files, expected] of [
  ["on", { [enabled]: "Y\n", "sys/kernel/security/apparmor/profiles": "" }, true],
  ["off", { [enabled]: "N\n", "sys/kernel/security/apparmor/profiles": "" }, false],
  ["not mounted", { [enabled]: "Y\n" }, false],
  ["not built in", {}, false],
] as const) {
  test(`AppArmor: ${name}`, async () => assert.equal(await isAppArmorEnabled(machineWith(files)), expected));
}

const selinuxfs = { "proc/self/mountinfo": line("/sys/fs/selinux", "", "selinuxfs") };
const label = "proc/self/attr/current";
for (const [name, files, expected] of [
  ["on", { ...selinuxfs, [label]: "system_u:system_r:kubelet_t:s0\0" }, true],
  ["no policy loaded", { ...selinuxfs, [label]: "kernel\0" }, false],
  ["no label", selinuxfs, false],
  ["not mounted", { "proc/self/mountinfo": line("/", "", "ext4"), [label]: "unconfined\n" }, false],
] as const) {
  test(`SELinux: ${name}`, async () => assert.equal(await isSelinuxEnabled(machineWith(files)), expected));
}

for (const [name, files, expected] of [
  [
    "by its policy",
    {
      "etc/selinux/config": "# x\nSELINUX=enforcing\nSELINUXTYPE=mls\n",
      "etc/selinux/mls/contexts/lxc_contexts": 'process = "a:b:c:s0"\nfile = "system_u:object_r:container_file_t:s0"\n',
    },
    "system_u:object_r:container_file_t:s0",
  ],
  ["by the usual policy", { "etc/selinux/targeted/contexts/lxc_contexts": "file = u:r:t:s0\n" }, "u:r:t:s0"],
  ["that is not there", {}, ""],
] as const) {
  test(`SELinux: the label of containers' files ${name}`, async () => {
    assert.equal(await readContainerFileLabel(machineWith(files)), expected);
  });
}

test("directories: parents and mode of new ones, an existing one keeps its own", async () => {
  const root = machineWith({});
  await ensureDirectory(join(root, "a/b"), 0o750);
  assert.equal(statSync(join(root, "a/b")).mode & 0o777, 0o750);
  await ensureDirectory(join(root, "a/b"), 0o700);
  assert.equal(statSync(join(root, "a/b")).mode & 0o777, 0o750);
});

test("directories: a file in the way is named", async () => {
  const root = machineWith({ file: "" });
  await assert.rejects(ensureDirectory(join(root, "file/sub"), 0o750), /Cannot create directory ".*file\/sub"/);
});

const never = new AbortController().signal;

const settings = {
  "proc/sys/vm/overcommit_memory": "1\n",
  "proc/sys/vm/panic_on_oom": "0\n",
  "proc/sys/kernel/panic": "10\n",
  "proc/sys/kernel/panic_on_oops": "1\n",
  "proc/sys/kernel/keys/root_maxkeys": "1000000\n",
  "proc/sys/kernel/keys/root_maxbytes": "25000000\n",
};
const overcommit = "proc/sys/vm/overcommit_memory";

test("kernel settings: what differs is changed, and only that", async () => {
  const root = machineWith({ ...settings, [overcommit]: "0\n" });
  chmodSync(join(root, "proc/sys/kernel/panic"), 0o444);
  await tuneKernel({ protect: false, mayLackRights: false }, silentLogger, root);
  for (const [name, text] of Object.entries(settings)) {
    assert.equal(readFileSync(join(root, name), "utf8"), name === overcommit ? "1" : text);
  }
});

test("kernel settings: protected, all that differs is said and nothing is changed", async () => {
  const root = machineWith({ ...settings, [overcommit]: "0\n", "proc/sys/kernel/panic": "0\n" });
  await assert.rejects(
    tuneKernel({ protect: true, mayLackRights: true }, silentLogger, root),
    /invalid kernel flag: vm\/overcommit_memory, expected value: 1, actual value: 0; invalid kernel flag: kernel\/panic,/,
  );
  assert.equal(readFileSync(join(root, overcommit), "utf8"), "0\n");
});

test("kernel settings: what can't be had is an error, except in a user namespace that is meant to be one", async () => {
  const { [overcommit]: _, ...others } = settings;
  const nested = { "proc/self/uid_map": "         0     100000      65536\n" };
  const whole = { "proc/self/uid_map": "         0          0 4294967295\n" };
  const tune = (files: Record<string, string>, mayLackRights: boolean) =>
    tuneKernel({ protect: false, mayLackRights }, silentLogger, machineWith({ ...others, ...files }));
  await tune(nested, true);
  await assert.rejects(tune(nested, false), /vm\/overcommit_memory: ENOENT/);
  await assert.rejects(tune(whole, true), /vm\/overcommit_memory: ENOENT/);
});

test("OOM score: written", async () => {
  const root = machineWith({ "proc/self/oom_score_adj": "0" });
  await setOwnOomScore(-999, new FakeClock(), never, root);
  assert.equal(readFileSync(join(root, "proc/self/oom_score_adj"), "utf8"), "-999");
});

/** File operations take real time: waits until the code under test sleeps on its clock. */
async function asleep(clock: FakeClock): Promise<void> {
  while (clock.pendingTimers === 0) await settle(1);
}

test("OOM score: a second try 100 ms later, then it gives up", async () => {
  const clock = new FakeClock();
  let ended = false;
  const failed = assert.rejects(
    setOwnOomScore(-999, clock, never, machineWith({})).finally(() => {
      ended = true;
    }),
    /Cannot set the OOM score of this process to -999/,
  );
  await asleep(clock);
  await clock.advance(99);
  assert.equal(ended, false);
  await clock.advance(1);
  await failed;
  assert.equal(clock.pendingTimers, 0);
});

test("OOM score: the second try succeeds where the first did not", async () => {
  const clock = new FakeClock();
  const root = machineWith({});
  const done = setOwnOomScore(-5, clock, never, root);
  await asleep(clock);
  mkdirSync(join(root, "proc/self"), { recursive: true });
  await clock.advance(100);
  await done;
  assert.equal(readFileSync(join(root, "proc/self/oom_score_adj"), "utf8"), "-5");
});
