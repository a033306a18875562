// Against the kernel of the machine that runs the tests, below a root of their own, wherever that has cgroup v1.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { access, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { readCgroupLayout } from "../../connections/host/index.ts";
import { silentLogger, systemClock } from "../../ground/base/index.ts";
import type { CgroupNaming, IdentifiedPod, PodUid, ResourceRequirements } from "../../ground/model/index.ts";
import { kernelCgroupFiles } from "./cgroup-files.ts";
import { CgroupTree } from "./cgroup-tree.ts";
import type { PodValueSettings } from "./pod-cgroup-limits.ts";
import { PodCgroups } from "./pod-cgroups.ts";

const layout = await readCgroupLayout();
const mountPoints = layout.version === 1 ? layout.mountPoints : new Map<string, string>();
const signal = new AbortController().signal;

async function isUsable(): Promise<boolean> {
  const cpu = mountPoints.get("cpu");
  if (cpu === undefined || mountPoints.get("memory") === undefined) return false;
  const probe = join(cpu, `nodelet-probe-${randomBytes(4).toString("hex")}`);
  try {
    await kernelCgroupFiles.makeDirectory(probe);
    await kernelCgroupFiles.removeDirectory(probe);
    return true;
  } catch {
    return false;
  }
}
const skip = (await isUsable()) ? false : "needs root on a machine with writable cgroup v1 hierarchies";

function pod(uid: string, resources: ResourceRequirements): IdentifiedPod {
  return { metadata: { name: uid, namespace: "n", uid }, spec: { containers: [{ name: "c", resources }] } };
}
const full = { cpu: "250m", memory: "64Mi" };
const guaranteed = pod("g-1", { requests: full, limits: full });
const burstable = pod("b-1", { requests: { cpu: "500m" } });
const bestEffort = pod("e-1", {});

interface RealNode {
  readonly cgroups: PodCgroups;
  readonly tree: CgroupTree;
  readonly root: string;
  readonly file: (controller: string, path: string) => string;
}

async function onRealKernel(
  run: (node: RealNode) => Promise<void>,
  more: Partial<PodValueSettings> = {},
): Promise<void> {
  const root = `/nodelet-test-${randomBytes(4).toString("hex")}`;
  const tree = new CgroupTree(layout, kernelCgroupFiles, systemClock);
  const naming: CgroupNaming = { driver: "cgroupfs", root, perQos: true };
  const settings = { cpuCfsQuota: true, cpuPeriodUs: 100_000, podPidsLimit: 500, memoryQos: false, hugePageSizes: [] };
  const cgroups = new PodCgroups(
    naming,
    { ...settings, ...more },
    {
      tree,
      log: silentLogger,
      activePods: () => [guaranteed, burstable, bestEffort],
      arePodsKnown: () => true,
      hasExclusiveCpus: () => false,
      isSettled: () => true,
    },
  );
  const file = (controller: string, path: string): string => join(mountPoints.get(controller) ?? "", root, path);
  try {
    await cgroups.createTiers();
    await run({ cgroups, tree, root, file });
  } finally {
    await tree.remove(root, "kill", signal);
  }
  for (const mountPoint of mountPoints.values())
    await assert.rejects(access(join(mountPoint, root)), { code: "ENOENT" });
}

const contentOf = async (path: string): Promise<string> => (await readFile(path, "utf8")).trim();

/** A process that does nothing, in the given cgroup of every hierarchy. */
async function idleIn(path: string): Promise<ChildProcess> {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  await once(child, "spawn");
  for (const mountPoint of mountPoints.values())
    await writeFile(join(mountPoint, path, "cgroup.procs"), `${child.pid}`);
  return child;
}

test("pods of each class get their cgroup in every hierarchy, with the kernel agreeing to its values", {
  skip,
}, async () => {
  await onRealKernel(async ({ cgroups, file }) => {
    for (const one of [guaranteed, burstable, bestEffort]) {
      await cgroups.ensure(one);
      assert.equal(await cgroups.exists(one), true);
    }
    for (const controller of mountPoints.keys()) await access(file(controller, "kubepods/burstable/podb-1"));
    assert.equal(await contentOf(file("cpu", "kubepods/podg-1/cpu.shares")), "256");
    assert.equal(await contentOf(file("cpu", "kubepods/podg-1/cpu.cfs_quota_us")), "25000");
    assert.equal(await contentOf(file("cpu", "kubepods/podg-1/cpu.cfs_period_us")), "100000");
    assert.equal(await contentOf(file("memory", "kubepods/podg-1/memory.limit_in_bytes")), String(64 << 20));
    assert.equal(await contentOf(file("pids", "kubepods/podg-1/pids.max")), "500");
    assert.equal(await contentOf(file("cpu", "kubepods/burstable/cpu.shares")), "512");
    assert.equal(await contentOf(file("cpu", "kubepods/burstable/podb-1/cpu.shares")), "512");
    assert.equal(await contentOf(file("cpu", "kubepods/besteffort/cpu.shares")), "2");
    assert.equal(await contentOf(file("cpu", "kubepods/besteffort/pode-1/cpu.shares")), "2");
    assert.notEqual(await contentOf(file("cpuset", "kubepods/podg-1/cpuset.cpus")), "");
    assert.deepEqual(await cgroups.list(), new Set(["g-1", "b-1", "e-1"]));
  });
});

test("a pod with a cgroup missing in one hierarchy is not complete", { skip }, async () => {
  await onRealKernel(async ({ cgroups, file }) => {
    await cgroups.ensure(guaranteed);
    await kernelCgroupFiles.removeDirectory(file("memory", "kubepods/podg-1"));
    assert.equal(await cgroups.exists(guaranteed), false);
    assert.deepEqual(await cgroups.list(), new Set(["g-1"]));
    await cgroups.ensure(guaranteed);
    assert.equal(await contentOf(file("memory", "kubepods/podg-1/memory.limit_in_bytes")), String(64 << 20));
  });
});

test("a resize is written into the living cgroup", { skip }, async () => {
  await onRealKernel(async ({ cgroups, file }) => {
    await cgroups.ensure(guaranteed);
    const more = { cpu: "1", memory: "128Mi" };
    for (const resource of ["memory", "cpu"] as const) {
      await cgroups.raise(pod("g-1", { requests: more, limits: more }), [resource]);
      await cgroups.lower(pod("g-1", { requests: more, limits: more }), [resource]);
    }
    assert.equal(await contentOf(file("cpu", "kubepods/podg-1/cpu.cfs_quota_us")), "100000");
    assert.equal(await contentOf(file("memory", "kubepods/podg-1/memory.limit_in_bytes")), String(128 << 20));
    const found = { cpuShares: 1024, cpuQuota: 100_000, cpuPeriod: 100_000, memoryLimitBytes: 128n << 20n };
    assert.deepEqual(await cgroups.resources(guaranteed), found);
    await cgroups.ensure(bestEffort);
    const none = { cpuShares: 2, cpuQuota: 0, cpuPeriod: 100_000, memoryLimitBytes: 0n };
    assert.deepEqual(await cgroups.resources(bestEffort), none);
  });
});

test("a process that the runtime has forgotten goes with its pod's cgroup, and with what is below", {
  skip,
}, async () => {
  await onRealKernel(async ({ cgroups, tree, root }) => {
    await cgroups.ensure(burstable);
    const path = `${root}/kubepods/burstable/podb-1/container`;
    await tree.create(path);
    const child = await idleIn(path);
    const gone = once(child, "exit");
    await cgroups.remove("b-1" as PodUid, signal);
    assert.deepEqual(await gone, [null, "SIGKILL"]);
    assert.deepEqual(await cgroups.list(), new Set());
    await cgroups.remove("b-1" as PodUid, signal);
  });
});

test("removal while the last process is dying needs no second call", { skip }, async () => {
  await onRealKernel(async ({ cgroups, root }) => {
    await cgroups.ensure(bestEffort);
    const child = await idleIn(`${root}/kubepods/besteffort/pode-1`);
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await Promise.all([gone, cgroups.remove("e-1" as PodUid, signal)]);
    assert.deepEqual(await cgroups.list(), new Set());
  });
});

test("many pods made and removed at the same time", { skip }, async () => {
  await onRealKernel(async ({ cgroups }) => {
    const pods = Array.from({ length: 20 }, (_, index) => pod(`many-${index}`, { requests: { cpu: "10m" } }));
    await Promise.all(pods.flatMap((one) => [cgroups.ensure(one), cgroups.ensure(one)]));
    assert.equal((await cgroups.list()).size, 20);
    await Promise.all(pods.map((one) => cgroups.remove(one.metadata.uid as PodUid, signal)));
    assert.equal((await cgroups.list()).size, 0);
  });
});

/** A process that takes 30 MB when it is told to, and keeps them. */
const holder =
  "process.stdin.once('data', () => { globalThis.held = Buffer.alloc(30_000_000, 1); console.log('held'); });";

test("a class that holds more than better ones leave it keeps that and lives, and has its limit when it gives it back", {
  skip,
}, async () => {
  const mebibyte = 1 << 20;
  const memoryReserve = { percent: 50n, allocatable: BigInt(40 * mebibyte) };
  await onRealKernel(
    async ({ cgroups, root, file }) => {
      await cgroups.ensure(bestEffort);
      const child = spawn(process.execPath, ["-e", holder], { stdio: ["pipe", "pipe", "ignore"] });
      await once(child, "spawn");
      const gone = once(child, "exit");
      try {
        const path = `${root}/kubepods/besteffort/pode-1`;
        // Before it takes any memory there: the limit of its class, half of 64 MiB less than all.
        const limit = async (): Promise<number> =>
          Number(await contentOf(file("memory", "kubepods/besteffort/memory.limit_in_bytes")));
        assert.equal(await limit(), 8 * mebibyte);
        await writeFile(file("memory", "kubepods/besteffort/memory.limit_in_bytes"), String(200 * mebibyte));
        for (const mountPoint of mountPoints.values())
          await writeFile(join(mountPoint, path, "cgroup.procs"), `${child.pid}`);
        const held = once(child.stdout, "data");
        child.stdin.write("now\n");
        await held;
        await cgroups.updateTiers();
        assert.ok((await limit()) >= 30_000_000 && (await limit()) < 200 * mebibyte, `${await limit()} bytes`);
        assert.deepEqual([child.exitCode, child.signalCode], [null, null], "nobody was killed for it");
      } finally {
        child.kill("SIGKILL");
        await gone;
      }
      await cgroups.updateTiers();
      assert.equal(
        await contentOf(file("memory", "kubepods/besteffort/memory.limit_in_bytes")),
        String(8 * mebibyte),
        "what is left",
      );
    },
    { memoryReserve },
  );
});
