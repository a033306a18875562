import assert from "node:assert/strict";
import { closeSync, mkdirSync, openSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { MadeUpFiles } from "../../../../test/support/made-up-files.ts";
import { readCgroupLayout } from "../cgroups.ts";
import { blockDeviceName, readDiskActivity } from "./block-devices.ts";
import { cgroupReader } from "./cgroup-usage.ts";
import { parseBlkio } from "./cgroup-v1-usage.ts";
import { parseIoStat } from "./cgroup-v2-usage.ts";
import { readKernelFile, readKernelNumber } from "./kernel-file.ts";
import { readBootTime, readCgroupOf, readMemoryOfMachine, readNetworkOf, readTaskCount } from "./machine-usage.ts";
import { parsePressure } from "./pressure.ts";
import { mostDescriptors, readOpenFileLimit, readOpenFiles, readProcess } from "./process-usage.ts";

const meminfo = "MemTotal:       1000 kB\nMemAvailable:    600 kB\nSwapTotal:       100 kB\nSwapFree:         40 kB\n";
const unlimited = "9223372036854771712\n";

describe("cgroup version 1", () => {
  const mounts = new Map(["cpu", "cpuacct", "memory", "pids", "blkio"].map((name) => [name, `/cg/${name}`]));
  const pod = "/kubepods/pod1";
  const files = {
    "proc/meminfo": meminfo,
    [`cg/cpuacct${pod}/cpuacct.usage`]: "5000000000\n",
    [`cg/cpuacct${pod}/cpuacct.stat`]: "user 300\nsystem 200\n",
    [`cg/cpu${pod}/cpu.shares`]: "512\n",
    [`cg/cpu${pod}/cpu.cfs_period_us`]: "100000\n",
    [`cg/cpu${pod}/cpu.cfs_quota_us`]: "50000\n",
    [`cg/cpu${pod}/cpu.stat`]: "nr_periods 10\nnr_throttled 4\nthrottled_time 7000\n",
    [`cg/cpu${pod}/cgroup.procs`]: "11\n12\n",
    [`cg/memory${pod}/memory.usage_in_bytes`]: "1000\n",
    [`cg/memory${pod}/memory.limit_in_bytes`]: "4000\n",
    [`cg/memory${pod}/memory.memsw.limit_in_bytes`]: "6000\n",
    [`cg/memory${pod}/memory.soft_limit_in_bytes`]: unlimited,
    [`cg/memory${pod}/memory.max_usage_in_bytes`]: "1500\n",
    [`cg/memory${pod}/memory.failcnt`]: "3\n",
    [`cg/memory${pod}/memory.kmem.usage_in_bytes`]: "77\n",
    [`cg/memory${pod}/memory.oom_control`]: "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    [`cg/memory${pod}/memory.stat`]:
      "cache 1\nrss 2\npgfault 5\npgmajfault 1\ntotal_cache 100\ntotal_rss 200\ntotal_mapped_file 30\n" +
      "total_active_file 40\ntotal_inactive_file 300\ntotal_pgfault 50\ntotal_pgmajfault 10\ntotal_swap 20\n",
    [`cg/memory${pod}/container/memory.usage_in_bytes`]: "10\n",
    [`cg/memory${pod}/container/memory.limit_in_bytes`]: unlimited,
    [`cg/memory${pod}/container/memory.stat`]: "total_inactive_file 30\n",
    [`cg/pids${pod}/pids.current`]: "9\n",
    [`cg/pids${pod}/pids.max`]: "max\n",
    [`cg/blkio${pod}/blkio.throttle.io_service_bytes_recursive`]:
      "8:0 Read 4096\n8:0 Write 512\n8:0 Sync 1\nTotal 4608\n",
    [`cg/blkio${pod}/blkio.throttle.io_serviced_recursive`]: "8:0 Read 4\n8:0 Write 1\n",
    "cg/memory/memory.usage_in_bytes": "900\n",
    "cg/memory/memory.stat": "total_inactive_file 100\ntotal_rss 300\n",
  };

  test("usage, details, and what is below", () => {
    using made = new MadeUpFiles(files);
    const reader = cgroupReader({ version: 1, mountPoints: mounts, unifiedMountPoint: undefined }, made.root);
    assert.deepEqual(reader.usage(pod), {
      cpu: { usageNanoseconds: 5e9, userNanoseconds: 3e9, systemNanoseconds: 2e9 },
      memory: {
        usageBytes: 1000,
        workingSetBytes: 700,
        rssBytes: 200,
        cacheBytes: 100,
        mappedFileBytes: 30,
        activeFileBytes: 40,
        inactiveFileBytes: 300,
        pageFaults: 50,
        majorPageFaults: 10,
        ownPageFaults: { minor: 5, major: 1 },
        kernelBytes: undefined,
        swapBytes: 20,
        limitBytes: 4000,
        swapLimitBytes: 2000,
      },
    });
    assert.deepEqual(reader.glance(pod), { cpuNanoseconds: 5e9, workingSetBytes: 700 });
    assert.deepEqual(reader.glance("/gone"), { cpuNanoseconds: undefined, workingSetBytes: undefined });
    assert.deepEqual(reader.details(pod), {
      throttling: { periods: 10, throttledPeriods: 4, throttledNanoseconds: 7000 },
      cpuShares: 512,
      cpuPeriodMicroseconds: 100_000,
      cpuQuotaMicroseconds: 50_000,
      memoryPeakBytes: 1500,
      memoryFailures: 3,
      memoryKernelBytes: 77,
      memoryReservationBytes: undefined,
      memorySwapLimitBytes: 6000,
      oomKills: 2,
      io: [{ major: 8, minor: 0, readBytes: 4096, writeBytes: 512, reads: 4, writes: 1 }],
      tasks: 9,
      tasksLimit: undefined,
    });
    assert.deepEqual(reader.processes(pod), [11, 12]);
    assert.deepEqual(reader.children(pod), ["container"]);
    assert.equal(reader.pressures(pod), undefined);
    assert.equal(reader.pressures("/"), undefined);
    made.write({ "proc/pressure/memory": "some avg10=1.00 avg60=0.00 avg300=0.00 total=7\n" });
    assert.equal(reader.pressures("/")?.memory?.some.totalMicroseconds, 7);
    assert.equal(reader.exists(pod), true);
    assert.equal(reader.exists("/kubepods/pod2"), false);
  });

  test("no limit is no limit; a working set is never negative; the top is limited by the machine", () => {
    using made = new MadeUpFiles(files);
    const reader = cgroupReader({ version: 1, mountPoints: mounts, unifiedMountPoint: undefined }, made.root);
    const { cpu, memory } = reader.usage(`${pod}/container`);
    assert.equal(cpu, undefined);
    assert.equal(memory?.limitBytes, undefined);
    assert.equal(memory?.workingSetBytes, 0);
    const top = reader.usage("/").memory;
    assert.deepEqual(
      [top?.workingSetBytes, top?.limitBytes, top?.swapBytes, top?.swapLimitBytes],
      [800, 1_024_000, 61_440, 102_400],
    );
  });

  test("a cgroup that is gone has no figures, and no quota has no throttling", () => {
    using made = new MadeUpFiles({ ...files, [`cg/cpu${pod}/cpu.cfs_quota_us`]: "-1\n" });
    const reader = cgroupReader({ version: 1, mountPoints: mounts, unifiedMountPoint: undefined }, made.root);
    assert.deepEqual(reader.usage("/gone"), { cpu: undefined, memory: undefined });
    assert.deepEqual(reader.processes("/gone"), []);
    assert.deepEqual(reader.children("/gone"), []);
    assert.equal(reader.createdAt("/gone"), undefined);
    const { throttling, cpuQuotaMicroseconds } = reader.details(pod);
    assert.deepEqual([throttling, cpuQuotaMicroseconds], [undefined, undefined]);
  });
});

test("this machine's own top", async () => {
  const { cpu, memory } = cgroupReader(await readCgroupLayout()).usage("/");
  assert.ok((cpu?.usageNanoseconds ?? 0) > 0);
  assert.ok((memory?.workingSetBytes ?? 0) > 0);
});

describe("cgroup version 2", () => {
  const layout = { version: 2, mountPoint: "/cg", controllers: [] } as const;
  const pod = "/kubepods.slice/kubepods-pod1.slice";
  const pressure =
    "some avg10=1.50 avg60=0.75 avg300=0.10 total=2000\nfull avg10=0.50 avg60=0.25 avg300=0.01 total=1000\n";
  const files = {
    "proc/meminfo": meminfo,
    "proc/pressure/cpu": pressure,
    [`cg${pod}/cpu.stat`]:
      "usage_usec 5000\nuser_usec 3000\nsystem_usec 2000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 7\n",
    [`cg${pod}/cpu.max`]: "50000 100000\n",
    [`cg${pod}/cpu.weight`]: "20\n",
    [`cg${pod}/cpu.pressure`]: pressure,
    [`cg${pod}/memory.pressure`]: pressure,
    [`cg${pod}/io.pressure`]: pressure,
    [`cg${pod}/memory.current`]: "1000\n",
    [`cg${pod}/memory.max`]: "4000\n",
    [`cg${pod}/memory.low`]: "500\n",
    [`cg${pod}/memory.peak`]: "1500\n",
    [`cg${pod}/memory.swap.current`]: "20\n",
    [`cg${pod}/memory.swap.max`]: "2000\n",
    [`cg${pod}/memory.events`]: "low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\n",
    [`cg${pod}/memory.stat`]:
      "anon 200\nfile 100\nkernel 77\nfile_mapped 30\nactive_file 40\ninactive_file 300\npgfault 50\npgmajfault 10\n",
    [`cg${pod}/io.stat`]: "8:0 rbytes=4096 wbytes=512 rios=4 wios=1 dbytes=0 dios=0\n",
    [`cg${pod}/pids.current`]: "9\n",
    [`cg${pod}/pids.max`]: "100\n",
    [`cg${pod}/cgroup.procs`]: "11\n12\n",
    [`cg${pod}/cri-containerd-abc.scope/cpu.max`]: "max 100000\n",
    [`cg${pod}/cri-containerd-abc.scope/memory.max`]: "max\n",
    [`cg${pod}/cri-containerd-abc.scope/memory.current`]: "10\n",
    [`cg${pod}/cri-containerd-abc.scope/memory.stat`]: "inactive_file 30\n",
    "cg/memory.stat": "anon 300\nfile 600\ninactive_file 100\n",
  };

  test("usage, details, pressure, and what is below", () => {
    using made = new MadeUpFiles(files);
    const reader = cgroupReader(layout, made.root);
    assert.deepEqual(reader.usage(pod), {
      cpu: { usageNanoseconds: 5e6, userNanoseconds: 3e6, systemNanoseconds: 2e6 },
      memory: {
        usageBytes: 1000,
        workingSetBytes: 700,
        rssBytes: 200,
        cacheBytes: 100,
        mappedFileBytes: 30,
        activeFileBytes: 40,
        inactiveFileBytes: 300,
        pageFaults: 50,
        majorPageFaults: 10,
        ownPageFaults: undefined,
        kernelBytes: 77,
        swapBytes: 20,
        limitBytes: 4000,
        swapLimitBytes: 2000,
      },
    });
    assert.deepEqual(reader.glance(pod), { cpuNanoseconds: 5e6, workingSetBytes: 700 });
    assert.deepEqual(reader.glance("/gone"), { cpuNanoseconds: undefined, workingSetBytes: undefined });
    assert.deepEqual(reader.details(pod), {
      throttling: { periods: 10, throttledPeriods: 4, throttledNanoseconds: 7000 },
      cpuShares: 500,
      cpuPeriodMicroseconds: 100_000,
      cpuQuotaMicroseconds: 50_000,
      memoryPeakBytes: 1500,
      memoryFailures: 3,
      memoryKernelBytes: undefined,
      memoryReservationBytes: 500,
      memorySwapLimitBytes: 2000,
      oomKills: 2,
      io: [{ major: 8, minor: 0, readBytes: 4096, writeBytes: 512, reads: 4, writes: 1 }],
      tasks: 9,
      tasksLimit: 100,
    });
    const lost = {
      some: { avg10: 1.5, avg60: 0.75, avg300: 0.1, totalMicroseconds: 2000 },
      full: { avg10: 0.5, avg60: 0.25, avg300: 0.01, totalMicroseconds: 1000 },
    };
    assert.deepEqual(reader.pressures(pod), { cpu: lost, memory: lost, io: lost });
    assert.deepEqual(reader.pressures("/"), { cpu: lost, memory: undefined, io: undefined });
    assert.equal(reader.pressures("/gone"), undefined);
    assert.deepEqual(reader.processes(pod), [11, 12]);
    assert.deepEqual(reader.children(pod), ["cri-containerd-abc.scope"]);
    assert.ok((reader.createdAt(pod) ?? 0) > 0);
  });

  test("no limit is no limit; the top counts what its parts use and is limited by the machine", () => {
    using made = new MadeUpFiles(files);
    const reader = cgroupReader(layout, made.root);
    const container = `${pod}/cri-containerd-abc.scope`;
    assert.equal(reader.usage(container).memory?.limitBytes, undefined);
    assert.equal(reader.usage(container).memory?.workingSetBytes, 0);
    assert.equal(reader.details(container).throttling, undefined);
    const top = reader.usage("/").memory;
    assert.deepEqual(
      [top?.usageBytes, top?.workingSetBytes, top?.limitBytes, top?.swapBytes],
      [900, 800, 1_024_000, 61_440],
    );
  });
});

test("a pressure file of an old kernel says nothing of all processes at once", () => {
  const some = { avg10: 0, avg60: 0, avg300: 0, totalMicroseconds: 5 };
  assert.deepEqual(parsePressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"), {
    some,
    full: { ...some, totalMicroseconds: 0 },
  });
  assert.equal(parsePressure(""), undefined);
  assert.equal(parsePressure(undefined), undefined);
});

test("devices without a figure, and lines that are none", () => {
  assert.deepEqual(parseIoStat("8:16 rbytes=1\nnonsense\n"), [
    { major: 8, minor: 16, readBytes: 1, writeBytes: 0, reads: 0, writes: 0 },
  ]);
  assert.deepEqual(parseBlkio("Total 0\n", ""), []);
});

test("the machine: memory, start, tasks, network", () => {
  using made = new MadeUpFiles({
    "proc/meminfo": `${meminfo}Hugetlb:             200 kB\n`,
    "proc/stat": "cpu  1 2 3\nbtime 1700000000\n",
    "proc/loadavg": "0.00 0.01 0.05 2/345 6789\n",
    "proc/1/net/dev":
      "Inter-|   Receive |\n face |bytes |\n    lo: 9 9 9 9 0 0 0 0 9 9 9 9 0 0 0 0\n" +
      "  eth0: 100 2 3 4 0 0 0 0 500 6 7 8 0 0 0 0\nveth12ab: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n",
  });
  assert.deepEqual(readMemoryOfMachine(made.root), {
    totalBytes: 1_024_000,
    availableBytes: 614_400,
    swapTotalBytes: 102_400,
    swapUsedBytes: 61_440,
    hugePageBytes: 204_800,
  });
  assert.equal(readBootTime(made.root), 1_700_000_000_000);
  assert.equal(readTaskCount(made.root), 345);
  const eth0 = { rxBytes: 100, rxPackets: 2, rxErrors: 3, rxDropped: 4, txBytes: 500, txPackets: 6 };
  assert.deepEqual(readNetworkOf(1, made.root), [{ name: "eth0", ...eth0, txErrors: 7, txDropped: 8 }]);
  assert.deepEqual(readNetworkOf(2, made.root), []);
});

for (const [name, text, expected] of [
  ["version 2", "0::/system.slice/nodelet.service\n", "/system.slice/nodelet.service"],
  ["version 1, all the same", "4:memory:/a\n2:cpu,cpuacct:/a\n", "/a"],
  ["version 1, not the same", "4:memory:/a\n1:cpu:/\n0::/\n", undefined],
  ["nothing", "", undefined],
] as const) {
  test(`the cgroup of a process: ${name}`, () => {
    using made = new MadeUpFiles({ "proc/self/cgroup": text });
    assert.equal(readCgroupOf("self", made.root), expected);
  });
}

test("a process: time, memory, files", () => {
  const fields = Array.from({ length: 50 }, (_, index) => String(index + 3));
  fields[14 - 3] = "250";
  fields[15 - 3] = "50";
  fields[22 - 3] = "1000";
  fields[23 - 3] = "8192";
  using made = new MadeUpFiles({
    "proc/7/stat": `7 (a ) b) ${fields.join(" ")}\n`,
    "proc/7/status": "Name:\tx\nVmRSS:\t  12 kB\nvoluntary_ctxt_switches:\t42\nnonvoluntary_ctxt_switches:\t1\n",
    "proc/7/limits":
      "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 4096                 files\n",
    "proc/stat": "btime 100\n",
    "proc/7/fd/1": "",
  });
  symlinkSync("socket:[123]", join(made.root, "proc/7/fd/2"));
  assert.deepEqual(readProcess(7, made.root), {
    cpuSeconds: 3,
    virtualBytes: 8192,
    residentBytes: 12_288,
    openFiles: 2,
    mostOpenFiles: 1024,
    startedAt: 110,
    wakeUps: 42,
  });
  assert.deepEqual(readOpenFiles(7, made.root), { files: 2, sockets: 1 });
  assert.deepEqual(readOpenFiles(8, made.root), { files: 0, sockets: 0 });
  assert.equal(readOpenFileLimit(8, made.root), undefined);
  assert.equal(readProcess(8, made.root), undefined);
});

test("disks by their numbers", () => {
  using made = new MadeUpFiles({
    "proc/diskstats": "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0\n   8       1 sda1 9 9 9 9 9 9 9 9 9 9 9\n",
    "sys/dev/block/8:0/uevent": "MAJOR=8\nMINOR=0\nDEVNAME=sda\nDEVTYPE=disk\n",
  });
  const sda = readDiskActivity(8, 0, made.root);
  assert.deepEqual([sda?.reads, sda?.sectorsRead, sda?.writes, sda?.writeMs, sda?.weightedMs], [1, 3, 5, 8, 11]);
  assert.equal(readDiskActivity(9, 0, made.root), undefined);
  assert.equal(blockDeviceName(8, 0, made.root), "/dev/sda");
  assert.equal(blockDeviceName(0, 40, made.root), "0:40");
});

test("kernel files: longer than the buffer, no number, not there", () => {
  using made = new MadeUpFiles({ long: `${"z".repeat(100_000)}\n`, max: "max\n", directory: "" });
  assert.equal(readKernelFile(join(made.root, "long"))?.length, 100_001);
  assert.equal(readKernelNumber(join(made.root, "max")), undefined);
  assert.equal(readKernelFile(join(made.root, "none")), undefined);
  assert.equal(readKernelFile(made.root), undefined);
  writeFileSync(join(made.root, "minus"), "-1\n");
  assert.equal(readKernelNumber(join(made.root, "minus")), -1);
});

test("a process with a crowd of descriptors: so many are looked at, and all are counted where the kernel counts", () => {
  using made = new MadeUpFiles({ "proc/9/stat": "9 (x) S\n" });
  const directory = join(made.root, "proc/9/fd");
  mkdirSync(directory);
  for (let name = 0; name < 3 * mostDescriptors; name++) symlinkSync("socket:[1]", join(directory, String(name)));
  assert.equal(readOpenFiles(9, made.root).sockets, mostDescriptors);
  assert.equal(readOpenFiles(9, made.root, 1).sockets, 1);
  const opened = Array.from({ length: 2 * mostDescriptors }, () => openSync("/dev/null", "r"));
  try {
    const { files } = readOpenFiles("self");
    const isCounted = statSync("/proc/self/fd").size > 0;
    assert.ok(isCounted ? files > opened.length : files === mostDescriptors, `${files} files`);
  } finally {
    for (const each of opened) closeSync(each);
  }
});
