// A pod's limits while it is resized: nothing goes below what it holds, nor is taken back too early.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertHas, guaranteed, linesOf, node, pod } from "../../../test/support/pod-cgroups-node.ts";

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
  for (const resource of ["memory", "cpu"] as const) await cgroups.raise(resized, [resource]);
  assert.deepEqual(await limits(), ["cpu.max: 200000 100000", "memory.max: 1073741824"], "more CPUs, no less memory");
  for (const resource of ["memory", "cpu"] as const) await cgroups.lower(resized, [resource]);
  assert.deepEqual(await limits(), ["cpu.max: 200000 100000", "memory.max: 536870912"]);
});

test("a resize leaves the pod the memory that it holds, and takes it when it is given back", async () => {
  const { kernel, start, active } = node();
  const cgroups = start();
  await cgroups.ensure(guaranteed);
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
  await cgroups.raise(resized, ["memory", "cpu"]);
  await cgroups.lower(resized, ["memory", "cpu"]);
  assert.deepEqual(limits(), ["cpu.max: 50000 100000", `memory.max: ${1 << 30}`]);
  await cgroups.heal();
  assert.deepEqual(limits(), ["cpu.max: 50000 100000", `memory.max: ${1 << 30}`]);
  await uses(100 << 20);
  await cgroups.heal();
  assert.deepEqual(limits(), ["cpu.max: 50000 100000", `memory.max: ${512 << 20}`]);
});

for (const how of ["by restarts of its containers", "in place"] as const) {
  test(`a pod that gets limits for the first time, ${how}, has them as soon as it holds no more`, async () => {
    const { kernel, active, start, given } = node();
    const cgroups = start();
    const requests = { cpu: "100m", memory: "64Mi" };
    await cgroups.ensure(pod("b-1", { requests }));
    const limited = pod("b-1", { requests, limits: { cpu: "200m", memory: "128Mi" } });
    active.push(limited);
    const directory = "/sys/fs/cgroup/kubepods/burstable/podb-1";
    const limits = async (): Promise<string> =>
      `${(await kernel.read(`${directory}/cpu.max`)).trim()}, ${(await kernel.read(`${directory}/memory.max`)).trim()}`;
    const holds = async (bytes: number): Promise<void> => {
      await kernel.write(`${directory}/memory.current`, String(bytes));
      await kernel.write(`${directory}/memory.stat`, `anon ${bytes}\nfile 0\n`);
    };
    await holds(300 << 20);
    given.all = false;
    if (how === "in place") await cgroups.raise(limited, ["memory", "cpu"]);
    else await cgroups.follow(limited);
    await cgroups.heal();
    assert.equal(await limits(), "max 100000, max", "its containers have none yet");
    given.all = true;
    if (how === "in place") await cgroups.lower(limited, ["memory", "cpu"]);
    for (let look = 0; look < 3; look++) {
      await cgroups.follow(limited);
      assert.equal(await limits(), "20000 100000, max", "it holds more memory");
      await cgroups.heal();
      assert.equal(await limits(), "20000 100000, max", "healing would kill processes");
    }
    await holds(10 << 20);
    await cgroups.heal();
    assert.equal(await limits(), `20000 100000, ${128 << 20}`);
  });
}
