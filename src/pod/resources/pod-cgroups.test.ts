import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../ground/base/index.ts";
import {
  amountsOf,
  type CgroupNaming,
  type IdentifiedPod,
  type PodUid,
  type RecordNodeEvent,
  type ResourceRequirements,
} from "../../ground/model/index.ts";
import { CgroupTree } from "./cgroup-tree.ts";
import { FakeCgroup2 } from "./fake-cgroup2.ts";
import { limitPods, limitReserved, type NodeAllocatableSettings } from "./node-allocatable.ts";
import type { PodValueSettings } from "./pod-cgroup-limits.ts";
import { PodCgroups } from "./pod-cgroups.ts";

const mountPoint = "/sys/fs/cgroup";
const controllers = ["cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma"];
const settings: PodValueSettings = {
  cpuCfsQuota: true,
  cpuPeriodUs: 100_000,
  podPidsLimit: 1024,
  memoryQos: true,
  hugePageSizes: [2n << 20n],
};
const signal = new AbortController().signal;
const full = { cpu: "1", memory: "1Gi" };

function pod(uid: string, resources: ResourceRequirements = {}): IdentifiedPod {
  return { metadata: { name: uid, namespace: "n", uid }, spec: { containers: [{ name: "c", resources }] } };
}
const guaranteed = pod("g-1", { requests: full, limits: full });
const burstable = pod("b-1", { requests: { cpu: "500m", memory: "64Mi" } });
const bestEffort = pod("e-1");

interface Node {
  readonly kernel: FakeCgroup2;
  readonly tree: CgroupTree;
  readonly clock: FakeClock;
  readonly errors: string[];
  readonly active: IdentifiedPod[];
  /** Whether `active` is all there is. */
  readonly known: { all: boolean };
  /** Whether containers have what they were promised. */
  readonly given: { all: boolean };
  /** A new agent on the same node. */
  readonly start: () => PodCgroups;
}

function node(naming: Partial<CgroupNaming> = {}, more: Partial<PodValueSettings> = {}): Node {
  const kernel = new FakeCgroup2(mountPoint, controllers);
  const clock = new FakeClock();
  const tree = new CgroupTree({ version: 2, mountPoint, controllers }, kernel, clock);
  const errors: string[] = [];
  const active: IdentifiedPod[] = [];
  const known = { all: true };
  const given = { all: true };
  const log = { ...silentLogger, error: (message: string) => void errors.push(message) };
  const start = (): PodCgroups =>
    new PodCgroups(
      { driver: "cgroupfs", root: "", perQos: true, ...naming },
      { ...settings, ...more },
      {
        tree,
        log,
        activePods: () => active,
        arePodsKnown: () => known.all,
        hasExclusiveCpus: () => false,
        isSettled: () => given.all,
      },
    );
  return { kernel, tree, clock, errors, active, known, given, start };
}

const linesOf = (kernel: FakeCgroup2, path: string): readonly string[] =>
  kernel
    .report()
    .filter(
      (line) =>
        line.startsWith(`${path}/`) &&
        !line
          .slice(path.length + 1)
          .split(":")[0]
          ?.includes("/"),
    )
    .map((line) => line.slice(path.length + 1));

function assertHas(lines: readonly string[], line: string): void {
  assert.deepEqual(
    lines.filter((one) => one === line),
    [line],
    `lines are ${lines.join("; ")}`,
  );
}

test("what the kernel has of a pod on cgroup v2 is told in the shares that were meant", async () => {
  const { kernel, start } = node();
  const cgroups = start();
  await cgroups.ensure(guaranteed);
  const meant = await cgroups.resources(guaranteed);
  assert.equal(meant?.cpuShares, 1024, "and not 998, which is the way back from the weight 39");
  assert.equal(meant?.memoryLimitBytes, 1n << 30n);
  await kernel.write("/sys/fs/cgroup/kubepods/podg-1/cpu.weight", "100");
  assert.equal((await cgroups.resources(guaranteed))?.cpuShares, 2597);
  await kernel.write("/sys/fs/cgroup/kubepods/podg-1/cpu.max", "max 100000");
  assert.equal((await cgroups.resources(guaranteed))?.cpuQuota, 0);
});

test("what an agent that is gone gave a pod is taken back as soon as its containers have no more than their promise", async () => {
  const { kernel, start, given } = node();
  await start().ensure(guaranteed);
  const less = { cpu: "500m", memory: "512Mi" };
  const resized = pod("g-1", { requests: less, limits: less });
  const limits = (): readonly string[] =>
    linesOf(kernel, "/kubepods/podg-1").filter((line) => /^(cpu.max|memory.max)/.test(line));
  given.all = false;
  const next = start();
  await next.ensure(resized);
  await next.follow(resized);
  assert.deepEqual(limits(), ["cpu.max: 100000 100000", `memory.max: ${1 << 30}`]);
  given.all = true;
  await next.follow(resized);
  assert.deepEqual(limits(), ["cpu.max: 50000 100000", `memory.max: ${512 << 20}`]);
});

test("no limit goes below memory that a pod holds; it is said once, and tried again", async () => {
  const { kernel, start, errors, active } = node();
  await start().createTiers();
  await start().ensure(guaranteed);
  const less = { cpu: "500m", memory: "512Mi" };
  const resized = pod("g-1", { requests: less, limits: less });
  active.push(resized);
  const limits = (): readonly string[] =>
    linesOf(kernel, "/kubepods/podg-1").filter((line) => /^(cpu.max|memory.max)/.test(line));
  const uses = async (bytes: number): Promise<void> => {
    await kernel.write("/sys/fs/cgroup/kubepods/podg-1/memory.current", String(bytes));
    await kernel.write("/sys/fs/cgroup/kubepods/podg-1/memory.stat", `anon ${bytes}\nfile 0\n`);
  };
  await uses(600 << 20);
  const next = start();
  await next.ensure(resized);
  for (let look = 0; look < 3; look++) {
    await next.follow(resized);
    await next.heal();
  }
  assert.deepEqual(limits(), ["cpu.max: 50000 100000", `memory.max: ${1 << 30}`]);
  assert.deepEqual(errors, ["Could not lower the memory limit of the pod"]);
  await uses(100 << 20);
  await next.heal();
  assert.deepEqual(limits(), ["cpu.max: 50000 100000", `memory.max: ${512 << 20}`]);
});

test("a limit that the kernel refuses keeps nothing of the pod from starting, and is tried again", async () => {
  const { kernel, start, errors, active } = node();
  const cgroups = start();
  await cgroups.createTiers();
  await cgroups.ensure(guaranteed);
  const less = { cpu: "500m", memory: "512Mi" };
  const resized = pod("g-1", { requests: less, limits: less });
  active.push(resized);
  const write = kernel.write.bind(kernel);
  kernel.write = async (path, text) => {
    if (path.endsWith("podg-1/memory.max")) throw Object.assign(new Error("EBUSY"), { code: "EBUSY" });
    await write(path, text);
  };
  await cgroups.follow(resized);
  await cgroups.follow(resized);
  assert.deepEqual(errors, ["Could not limit the pod"]);
  kernel.write = write;
  await cgroups.heal();
  assertHas(linesOf(kernel, "/kubepods/podg-1"), `memory.max: ${512 << 20}`);
});

test("what a pod was raised to is not taken back by healing before its containers have it", async () => {
  const { kernel, start, active } = node();
  const cgroups = start();
  await cgroups.ensure(guaranteed);
  const more = { cpu: "2", memory: "512Mi" };
  const resized = pod("g-1", { requests: more, limits: more });
  active.push(resized);
  const limits = async (): Promise<readonly string[]> => {
    await cgroups.heal();
    return linesOf(kernel, "/kubepods/podg-1").filter((line) => /^(cpu.max|memory.max)/.test(line));
  };
  assert.deepEqual(await limits(), ["cpu.max: 100000 100000", "memory.max: 1073741824"]);
  for (const resource of ["memory", "cpu"] as const) await cgroups.raise(resized, resource);
  assert.deepEqual(await limits(), ["cpu.max: 200000 100000", "memory.max: 1073741824"], "more CPUs, no less memory");
  for (const resource of ["memory", "cpu"] as const) await cgroups.lower(resized, resource);
  assert.deepEqual(await limits(), ["cpu.max: 200000 100000", "memory.max: 536870912"]);
});

test("the tiers on cgroup v2, to the file", async () => {
  const { kernel, start, active } = node();
  active.push(burstable, guaranteed);
  const cgroups = start();
  await cgroups.createTiers();
  await cgroups.updateTiers();
  assert.deepEqual(kernel.report(), [
    "/kubepods/besteffort/cpu.weight: 1",
    "/kubepods/besteffort/hugetlb.2MB.max: 4611686018427387904",
    "/kubepods/burstable/cpu.weight: 20",
    "/kubepods/burstable/hugetlb.2MB.max: 4611686018427387904",
    "/kubepods/burstable/memory.min: 67108864",
    "/kubepods/memory.min: 1140850688",
  ]);
});

test("pods of each class on cgroup v2, to the file", async () => {
  const { kernel, start, errors } = node();
  const cgroups = start();
  await cgroups.createTiers();
  for (const one of [guaranteed, burstable, bestEffort]) {
    assert.equal(await cgroups.exists(one), false);
    await cgroups.ensure(one);
    assert.equal(await cgroups.exists(one), true);
  }
  assert.deepEqual(linesOf(kernel, "/kubepods/podg-1"), [
    "cpu.max: 100000 100000",
    "cpu.weight: 39",
    "hugetlb.2MB.max: 0",
    "memory.max: 1073741824",
    "memory.min: 1073741824",
    "pids.max: 1024",
  ]);
  assert.deepEqual(linesOf(kernel, "/kubepods/burstable/podb-1"), [
    "cpu.weight: 20",
    "hugetlb.2MB.max: 0",
    "memory.min: 67108864",
    "pids.max: 1024",
  ]);
  assert.deepEqual(linesOf(kernel, "/kubepods/besteffort/pode-1"), [
    "cpu.weight: 1",
    "hugetlb.2MB.max: 0",
    "pids.max: 1024",
  ]);
  assert.deepEqual(errors, []);
});

test("slices where there is no systemd are made by hand, at the same places", async () => {
  const { kernel, start } = node({ driver: "systemd" });
  const cgroups = start();
  await cgroups.createTiers();
  await cgroups.ensure(burstable);
  const path = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podb_1.slice";
  assertHas(linesOf(kernel, path), "cpu.weight: 20");
  assert.deepEqual(await cgroups.list(), new Set(["b-1"]));
  await cgroups.remove("b-1" as PodUid, signal);
  assert.deepEqual(await cgroups.list(), new Set());
});

test("below a configured root", async () => {
  const { kernel, start } = node({ root: "/machine/pods" });
  const cgroups = start();
  await cgroups.ensure(guaranteed);
  assertHas(linesOf(kernel, "/machine/pods/kubepods/podg-1"), "cpu.weight: 39");
  assert.deepEqual(await cgroups.list(), new Set(["g-1"]));
});

test("without cgroups per pod nothing is made", async () => {
  const { kernel, start } = node({ perQos: false });
  const cgroups = start();
  await cgroups.createTiers();
  await cgroups.ensure(guaranteed);
  for (const resource of ["memory", "cpu"] as const) {
    await cgroups.raise(guaranteed, resource);
    await cgroups.lower(guaranteed, resource);
  }
  await cgroups.remove("g-1" as PodUid, signal);
  assert.equal(await cgroups.exists(guaranteed), false);
  assert.deepEqual(await cgroups.list(), new Set());
  assert.deepEqual(await kernel.directories(mountPoint), []);
});

test("a controller that cannot be delegated does not withhold the others", async () => {
  const { kernel, start } = node();
  kernel.undelegable.add("rdma");
  const cgroups = start();
  await cgroups.ensure(guaranteed);
  assert.equal(await cgroups.exists(guaranteed), true);
  assert.equal(
    await kernel.read(`${mountPoint}/kubepods/podg-1/cgroup.controllers`),
    "cpuset cpu io memory hugetlb pids\n",
  );
});

test("a cgroup without its controllers is not complete, and ensure completes it", async () => {
  const { kernel, start } = node();
  await kernel.makeDirectory(`${mountPoint}/kubepods`);
  await kernel.makeDirectory(`${mountPoint}/kubepods/podg-1`);
  const cgroups = start();
  assert.equal(await cgroups.exists(guaranteed), false);
  await cgroups.ensure(guaranteed);
  assert.equal(await cgroups.exists(guaranteed), true);
});

test("values are written once, not at every look; a resize writes them on purpose", async () => {
  const { kernel, start } = node();
  const cgroups = start();
  await cgroups.ensure(burstable);
  await kernel.write(`${mountPoint}/kubepods/burstable/podb-1/cpu.weight`, "77");
  await cgroups.ensure(burstable);
  assertHas(linesOf(kernel, "/kubepods/burstable/podb-1"), "cpu.weight: 77");
  for (const resource of ["memory", "cpu"] as const) {
    await cgroups.raise(pod("b-1", { requests: { cpu: "1" } }), resource);
    await cgroups.lower(pod("b-1", { requests: { cpu: "1" } }), resource);
  }
  assertHas(linesOf(kernel, "/kubepods/burstable/podb-1"), "cpu.weight: 39");
});

test("a resize leaves the pod its huge pages", async () => {
  const { kernel, start } = node();
  const cgroups = start();
  const pages = { "hugepages-2Mi": "4Mi" };
  const sized = (memory: string) =>
    pod("g-1", { requests: { cpu: "1", memory, ...pages }, limits: { cpu: "1", memory, ...pages } });
  const hugePages = (): readonly string[] =>
    linesOf(kernel, "/kubepods/podg-1").filter((line) => line.startsWith("hugetlb"));
  await cgroups.ensure(sized("1Gi"));
  const before = hugePages();
  assertHas(before, "hugetlb.2MB.max: 4194304");
  for (const memory of ["2Gi", "512Mi"]) {
    for (const resource of ["memory", "cpu"] as const) {
      await cgroups.raise(sized(memory), resource);
      await cgroups.lower(sized(memory), resource);
    }
    assert.deepEqual(hugePages(), before);
  }
  assertHas(linesOf(kernel, "/kubepods/podg-1"), "memory.max: 536870912");
});

test("an agent that was killed between making a cgroup and limiting it is healed by the next", async () => {
  const { kernel, tree, start } = node();
  await tree.create("/kubepods/podg-1");
  await start().ensure(guaranteed);
  assertHas(linesOf(kernel, "/kubepods/podg-1"), "memory.max: 1073741824");
});

test("a cgroup that vanished is made again", async () => {
  const { start, tree } = node();
  const cgroups = start();
  await cgroups.ensure(guaranteed);
  await tree.remove("/kubepods/podg-1", "kill", signal);
  await cgroups.ensure(guaranteed);
  assert.equal(await cgroups.exists(guaranteed), true);
});

test("a value that the kernel refuses is logged and does not keep the pod from running", async () => {
  const { kernel, start, errors } = node();
  const refusing = kernel.write.bind(kernel);
  kernel.write = async (path, text) => {
    if (path.endsWith("memory.max")) throw Object.assign(new Error("EBUSY"), { code: "EBUSY" });
    await refusing(path, text);
  };
  const cgroups = start();
  await cgroups.createTiers();
  await cgroups.ensure(guaranteed);
  assert.equal(await cgroups.exists(guaranteed), true);
  assert.deepEqual(errors, ["Could not limit the pod"]);
});

test("a cgroup that cannot be made is an error that names it", async () => {
  const { kernel, start } = node();
  kernel.makeDirectory = async () => {
    throw Object.assign(new Error("EROFS: read-only file system"), { code: "EROFS" });
  };
  await assert.rejects(start().ensure(guaranteed), {
    name: "CgroupError",
    path: "/kubepods/podg-1",
    message: "Cannot create cgroup /kubepods/podg-1: EROFS: read-only file system",
  });
});

test("the burstable tier follows the active pods, at once when one comes or goes, and is written only when it changes", async () => {
  const { kernel, start, active } = node();
  const cgroups = start();
  await cgroups.createTiers();
  active.push(burstable);
  await cgroups.ensure(burstable);
  assertHas(linesOf(kernel, "/kubepods/burstable"), "cpu.weight: 20");
  const { writes } = kernel;
  await cgroups.updateTiers();
  assert.equal(kernel.writes, writes);
  active.length = 0;
  await cgroups.remove("b-1" as PodUid, signal);
  assertHas(linesOf(kernel, "/kubepods/burstable"), "cpu.weight: 1");
});

test("many pods that come at once: the last count is what stays", async () => {
  const { kernel, start, active } = node();
  const cgroups = start();
  await cgroups.createTiers();
  const write = kernel.write.bind(kernel);
  // An early write that takes longest.
  let delays = 20;
  kernel.write = async (path, text) => {
    if (path.endsWith("burstable/cpu.weight")) {
      for (let turn = delays--; turn > 0; turn--) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    await write(path, text);
  };
  const pods = Array.from({ length: 10 }, (_, index) => pod(`b-${index}`, { requests: { cpu: "500m" } }));
  await Promise.all(
    pods.map(async (one) => {
      active.push(one);
      await cgroups.ensure(one);
    }),
  );
  assertHas(linesOf(kernel, "/kubepods/burstable"), "cpu.weight: 196");
});

test("a new agent never lowers a tier before it knows all pods, and puts it right when it does", async () => {
  const { kernel, start, active, known } = node();
  active.push(burstable, pod("b-2", { requests: { cpu: "500m", memory: "64Mi" } }));
  const before = start();
  await before.createTiers();
  await before.updateTiers();
  const tier = (): readonly string[] => linesOf(kernel, "/kubepods/burstable");
  assertHas(tier(), "cpu.weight: 39");
  known.all = false;
  const [first] = active.splice(0, 2) as [IdentifiedPod];
  const cgroups = start();
  await cgroups.createTiers();
  await cgroups.heal();
  assertHas(tier(), "cpu.weight: 39");
  active.push(first);
  await cgroups.ensure(first);
  assertHas(tier(), "cpu.weight: 39");
  assertHas(tier(), "memory.min: 134217728");
  // More than before is wanted, whoever else may come.
  active.push(pod("b-3", { requests: { cpu: "2", memory: "1Mi" } }));
  await cgroups.updateTiers();
  assertHas(tier(), "cpu.weight: 98");
  assertHas(tier(), "memory.min: 134217728");
  known.all = true;
  await cgroups.heal();
  assertHas(tier(), "memory.min: 68157440");
  active.length = 0;
  await cgroups.heal();
  assertHas(tier(), "cpu.weight: 1");
});

test("healing: whatever others change is put back, for adopted pods too, and nothing is written without need", async () => {
  const { kernel, start, active } = node();
  active.push(burstable, guaranteed);
  const first = start();
  await first.createTiers();
  for (const one of active) await first.ensure(one);
  await first.updateTiers();
  const right = kernel.report();
  const second = start();
  const { writes } = kernel;
  await second.heal();
  assert.equal(kernel.writes, writes);
  for (const line of right) {
    const [, file = ""] = /^(.*): /.exec(line) ?? [];
    await kernel.write(`${mountPoint}${file}`, file.endsWith("cpu.max") ? "max 100000" : "12345");
  }
  await second.heal();
  assert.deepEqual(kernel.report(), right);
});

test("healing: a pod that has no cgroup yet gets none, one that lost its cgroup gets it again", async () => {
  const { tree, start, active } = node();
  const cgroups = start();
  await cgroups.createTiers();
  active.push(guaranteed);
  await cgroups.heal();
  assert.equal(await cgroups.exists(guaranteed), false);
  await cgroups.ensure(guaranteed);
  await tree.remove("/kubepods/podg-1", "kill", signal);
  await cgroups.heal();
  assert.equal(await cgroups.exists(guaranteed), true);
  await tree.remove("/kubepods", "kill", signal);
  await cgroups.heal();
  assert.equal(await cgroups.exists(guaranteed), true);
});

test("healing: a pod's new spec has no say before it is put into effect", async () => {
  const { kernel, start, active } = node();
  const cgroups = start();
  await cgroups.ensure(burstable);
  const resized = pod("b-1", { requests: { cpu: "2", memory: "64Mi" } });
  active.push(resized);
  await cgroups.heal();
  assertHas(linesOf(kernel, "/kubepods/burstable/podb-1"), "cpu.weight: 20");
  for (const resource of ["memory", "cpu"] as const) {
    await cgroups.raise(resized, resource);
    await cgroups.lower(resized, resource);
  }
  await cgroups.heal();
  assertHas(linesOf(kernel, "/kubepods/burstable/podb-1"), "cpu.weight: 79");
});

test("healing: what cannot be healed is said once, and keeps back no other pod", async () => {
  const { kernel, start, active, errors } = node();
  const cgroups = start();
  await cgroups.createTiers();
  active.push(guaranteed, burstable);
  for (const one of active) await cgroups.ensure(one);
  for (const path of ["podg-1", "burstable/podb-1"])
    await kernel.write(`${mountPoint}/kubepods/${path}/cpu.weight`, "7");
  const write = kernel.write.bind(kernel);
  kernel.write = async (path, text) => {
    if (path.includes("podg-1")) throw Object.assign(new Error("EIO"), { code: "EIO" });
    await write(path, text);
  };
  for (let times = 0; times < 3; times++) await cgroups.heal();
  assertHas(linesOf(kernel, "/kubepods/burstable/podb-1"), "cpu.weight: 20");
  assert.deepEqual(errors, ["Could not heal the limits of the pod"]);
});

test("sharing out: what one class is refused does not cost the others their share", async () => {
  const { kernel, start, active } = node();
  const cgroups = start();
  await cgroups.createTiers();
  active.push(burstable);
  const write = kernel.write.bind(kernel);
  kernel.write = async (path, text) => {
    if (path === `${mountPoint}/kubepods/memory.min`) throw Object.assign(new Error("EIO"), { code: "EIO" });
    await write(path, text);
  };
  await assert.rejects(cgroups.updateTiers(), /memory.min/);
  assertHas(linesOf(kernel, "/kubepods/burstable"), "cpu.weight: 20");
});

test("a limit beyond all numbers of the kernel is written as the largest", async () => {
  const { kernel, start, active } = node();
  const cgroups = start();
  await cgroups.createTiers();
  const huge = pod("h-1", { requests: { memory: "1e30" }, limits: { memory: "1e30" } });
  active.push(huge);
  await cgroups.ensure(huge);
  assertHas(linesOf(kernel, "/kubepods/burstable/podh-1"), `memory.max: ${2n ** 63n - 1n}`);
});

test("a cgroup of no pod in which a process runs is left alone: it may be another agent's", async () => {
  const { tree, start, kernel, clock, errors } = node();
  const cgroups = start();
  await cgroups.createTiers();
  await tree.create("/kubepods/podother");
  kernel.setProcesses("/kubepods/podother", 1);
  const look = (): Promise<void> => cgroups.removeOrphanedCgroups(async () => new Set(), signal);
  await look();
  const second = look();
  await clock.advance(5000);
  await second;
  assert.deepEqual(errors, ["Could not remove the cgroup of a pod that is gone"]);
  await assert.rejects(kernel.removeDirectory(`${mountPoint}/kubepods/podother`), { code: "EBUSY" });
});

test("a pod that comes back while cgroups of no pod are removed keeps its own", async () => {
  const { tree, start } = node();
  const cgroups = start();
  await cgroups.createTiers();
  await tree.create("/kubepods/podg-1");
  let back: Promise<void> | undefined;
  const look = (): Promise<void> =>
    cgroups.removeOrphanedCgroups(async () => {
      back = cgroups.ensure(guaranteed);
      return new Set();
    }, signal);
  await cgroups.removeOrphanedCgroups(async () => new Set(), signal);
  await look();
  await back;
  assert.equal(await cgroups.exists(guaranteed), true);
});

test("a pod is known by its slice whatever signs its uid has", async () => {
  const { start } = node({ driver: "systemd" });
  const cgroups = start();
  const odd = pod("a_b-c");
  await cgroups.ensure(odd);
  for (let times = 0; times < 3; times++)
    await cgroups.removeOrphanedCgroups(async () => new Set(["a_b-c" as PodUid]), signal);
  assert.equal(await cgroups.exists(odd), true);
});

test("cgroups of no pod are removed at the second look, those of pods that anybody knows never", async () => {
  const { tree, start, active } = node();
  const cgroups = start();
  await cgroups.createTiers();
  active.push(guaranteed);
  await cgroups.ensure(guaranteed);
  for (const path of ["podleft", "burstable/podknown"]) await tree.create(`/kubepods/${path}`);
  let known: ReadonlySet<PodUid> | undefined;
  const look = (): Promise<void> => cgroups.removeOrphanedCgroups(async () => known, signal);
  // Not every source has spoken.
  for (let times = 0; times < 3; times++) await look();
  assert.equal((await cgroups.list()).size, 3);
  known = new Set(["known" as PodUid]);
  await look();
  assert.equal((await cgroups.list()).size, 3);
  await look();
  assert.deepEqual(await cgroups.list(), new Set(["g-1", "known"]));
});

test("the pods that have cgroups, in all classes and nothing else", async () => {
  const { start, tree } = node();
  const cgroups = start();
  assert.deepEqual(await cgroups.list(), new Set());
  for (const one of [guaranteed, burstable, bestEffort]) await cgroups.ensure(one);
  await tree.create("/kubepods/stranger");
  assert.deepEqual(await cgroups.list(), new Set(["g-1", "b-1", "e-1"]));
});

test("removal: a forgotten pod of any class, with what is below it", async () => {
  const { start, tree } = node();
  const cgroups = start();
  await cgroups.ensure(burstable);
  await tree.create("/kubepods/burstable/podb-1/container/nested");
  await start().remove("b-1" as PodUid, signal);
  assert.deepEqual(await cgroups.list(), new Set());
  await cgroups.remove("b-1" as PodUid, signal);
});

test("removal waits for a process that is just ending", async () => {
  const { start, kernel, clock } = node();
  const cgroups = start();
  await cgroups.ensure(bestEffort);
  kernel.setProcesses("/kubepods/besteffort/pode-1", 1);
  const removal = cgroups.remove("e-1" as PodUid, signal);
  await clock.advance(20);
  kernel.setProcesses("/kubepods/besteffort/pode-1", 0);
  await clock.advance(100);
  await removal;
  assert.deepEqual(await cgroups.list(), new Set());
});

test("removal kills a process that stays: the runtime has forgotten it", async () => {
  const { start, kernel, clock, tree } = node();
  const cgroups = start();
  await cgroups.ensure(bestEffort);
  await tree.create("/kubepods/besteffort/pode-1/container");
  kernel.setProcesses("/kubepods/besteffort/pode-1/container", 1);
  const removal = cgroups.remove("e-1" as PodUid, signal);
  await clock.advance(2000);
  await removal;
  assert.deepEqual(await cgroups.list(), new Set());
});

test("removal gives up on a process that can't be killed", async () => {
  const { start, kernel, clock } = node();
  kernel.unkillable = true;
  const cgroups = start();
  await cgroups.ensure(bestEffort);
  kernel.setProcesses("/kubepods/besteffort/pode-1", 1);
  const removal = assert.rejects(cgroups.remove("e-1" as PodUid, signal), {
    name: "CgroupError",
    message: /^Cannot remove cgroup \/kubepods\/besteffort\/pode-1: EBUSY/,
  });
  await clock.advance(2000);
  await removal;
  assert.deepEqual(await cgroups.list(), new Set(["e-1"]));
  assert.equal(clock.pendingTimers, 0);
});

test("removal can be aborted while it waits", async () => {
  const { start, kernel, clock } = node();
  const cgroups = start();
  await cgroups.ensure(bestEffort);
  kernel.setProcesses("/kubepods/besteffort/pode-1", 1);
  const abort = new AbortController();
  const removal = assert.rejects(cgroups.remove("e-1" as PodUid, abort.signal));
  await clock.advance(3);
  abort.abort();
  await removal;
  assert.equal(clock.pendingTimers, 0);
});

const gibibyte = 1n << 30n;

test("memory kept from lower classes follows the pods, and kills nobody who has it already", async () => {
  const { kernel, start, active, known } = node({}, { memoryReserve: { percent: 50n, allocatable: 4n * gibibyte } });
  const cgroups = start();
  await cgroups.createTiers();
  const limits = async (): Promise<readonly string[]> => {
    await cgroups.heal();
    return ["burstable", "besteffort"].map(
      (tier) => linesOf(kernel, `/kubepods/${tier}`).find((line) => line.startsWith("memory.max")) ?? "",
    );
  };
  const are = (burstable: bigint, bestEffort: bigint) => [`memory.max: ${burstable}`, `memory.max: ${bestEffort}`];
  assert.deepEqual(await limits(), are(4n * gibibyte, 4n * gibibyte), "nobody requests anything");
  active.push(guaranteed, pod("b-2", { requests: { cpu: "1", memory: "2Gi" } }));
  assert.deepEqual(await limits(), are(4n * gibibyte - gibibyte / 2n, 3n * gibibyte - gibibyte / 2n));
  // Best effort holds three: what of it are copies of files counts for nothing.
  const bestEffortFile = (name: string): string => `/sys/fs/cgroup/kubepods/besteffort/${name}`;
  await kernel.write(bestEffortFile("memory.current"), String(3n * gibibyte));
  await kernel.write(bestEffortFile("memory.stat"), `anon 5\nactive_file 4096\ninactive_file 4096`);
  assert.deepEqual(await limits(), are(4n * gibibyte - gibibyte / 2n, 3n * gibibyte - 8192n));
  await kernel.write(bestEffortFile("memory.current"), String(gibibyte));
  assert.deepEqual(
    await limits(),
    are(4n * gibibyte - gibibyte / 2n, 3n * gibibyte - gibibyte / 2n),
    "as it gives back",
  );
  // After a restart, before the pods are known, what is kept for them is not given up.
  known.all = false;
  active.length = 0;
  assert.deepEqual(await limits(), are(4n * gibibyte - gibibyte / 2n, 3n * gibibyte - gibibyte / 2n));
  known.all = true;
  assert.deepEqual(await limits(), are(4n * gibibyte, 4n * gibibyte));
});

test("a pod that waits for its volumes keeps only the least share of the CPUs", async () => {
  const { start, kernel } = node();
  const cgroups = start();
  await cgroups.ensure(guaranteed);
  await cgroups.minimiseCpu("g-1" as PodUid);
  assertHas(linesOf(kernel, "/kubepods/podg-1"), "cpu.weight: 1");
  await cgroups.minimiseCpu("unknown" as PodUid);
});

const share: NodeAllocatableSettings = {
  enforce: ["pods", "system-reserved", "kube-reserved-compressible"],
  capacity: amountsOf({ cpu: "4", memory: "16Gi", pid: "32768" }),
  systemReserved: amountsOf({ cpu: "1", memory: "1Gi" }),
  kubeReserved: amountsOf({ cpu: "500m", memory: "1Gi" }),
  systemReservedCgroup: "/system",
  kubeReservedCgroup: "/kube",
  hugePageSizes: [],
  memoryQos: true,
};
const naming: CgroupNaming = { driver: "cgroupfs", root: "", perQos: true };

test("the node's share for all pods", async () => {
  const { kernel, tree, start } = node();
  await start().createTiers();
  await limitPods(tree, naming, share);
  assert.deepEqual(linesOf(kernel, "/kubepods"), [
    "cpu.weight: 98",
    "memory.max: 15032385536",
    "memory.min: 0",
    "pids.max: 32768",
  ]);
});

test("reserved cgroups are limited but never made", async () => {
  const { kernel, tree } = node();
  const said: string[] = [];
  const tell: RecordNodeEvent = ({ type, reason, message }) => void said.push(`${type} ${reason} ${message}`);
  const problem = "Cannot limit cgroup /system: it does not exist; system-reserved needs it made beforehand";
  await assert.rejects(limitReserved(tree, naming, share, tell), { name: "CgroupError", message: problem });
  const failed = "Warning FailedNodeAllocatableEnforcement Failed to enforce System Reserved Cgroup Limits on";
  assert.deepEqual(said.splice(0), [`${failed} "/system": ${problem}`]);
  await tree.create("/system");
  await tree.create("/kube");
  await limitReserved(tree, naming, share, tell);
  assert.deepEqual(said, [
    "Normal NodeAllocatableEnforced Updated limits on system reserved cgroup /system",
    "Normal NodeAllocatableEnforced Updated limits on kube reserved cgroup /kube",
  ]);
  assert.deepEqual(kernel.report(), [
    "/kube/cpu.weight: 20",
    "/system/cpu.weight: 39",
    "/system/memory.max: 1073741824",
    "/system/memory.min: 1073741824",
  ]);
});
