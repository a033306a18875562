import assert from "node:assert/strict";
import { test } from "node:test";
import {
  assertHas,
  bestEffort,
  burstable,
  guaranteed,
  linesOf,
  mountPoint,
  node,
  pod,
  signal,
} from "../../../test/support/pod-cgroups-node.ts";
import type { PodUid } from "../../ground/model/index.ts";

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
    await cgroups.raise(guaranteed, [resource]);
    await cgroups.lower(guaranteed, [resource]);
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
    await cgroups.raise(pod("b-1", { requests: { cpu: "1" } }), [resource]);
    await cgroups.lower(pod("b-1", { requests: { cpu: "1" } }), [resource]);
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
      await cgroups.raise(sized(memory), [resource]);
      await cgroups.lower(sized(memory), [resource]);
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

test("a pod that waits for its volumes keeps only the least share of the CPUs", async () => {
  const { start, kernel } = node();
  const cgroups = start();
  await cgroups.ensure(guaranteed);
  await cgroups.minimiseCpu("g-1" as PodUid);
  assertHas(linesOf(kernel, "/kubepods/podg-1"), "cpu.weight: 1");
  await cgroups.minimiseCpu("unknown" as PodUid);
});
