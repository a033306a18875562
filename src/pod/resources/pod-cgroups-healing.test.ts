// What others have changed is put back.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  assertHas,
  burstable,
  guaranteed,
  linesOf,
  mountPoint,
  node,
  pod,
  signal,
} from "../../../test/support/pod-cgroups-node.ts";

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
    await cgroups.raise(resized, [resource]);
    await cgroups.lower(resized, [resource]);
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

test("a limit beyond all numbers of the kernel is written as the largest", async () => {
  const { kernel, start, active } = node();
  const cgroups = start();
  await cgroups.createTiers();
  const huge = pod("h-1", { requests: { memory: "1e30" }, limits: { memory: "1e30" } });
  active.push(huge);
  await cgroups.ensure(huge);
  assertHas(linesOf(kernel, "/kubepods/burstable/podh-1"), `memory.max: ${2n ** 63n - 1n}`);
});
