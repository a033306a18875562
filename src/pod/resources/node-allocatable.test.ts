import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOf, node } from "../../../test/support/pod-cgroups-node.ts";
import { amountsOf, type CgroupNaming, type RecordNodeEvent } from "../../ground/model/index.ts";
import { limitPods, limitReserved, type NodeAllocatableSettings } from "./node-allocatable.ts";

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
