// The cgroups of the QoS classes, and what one class keeps from another.
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
import type { IdentifiedPod, PodUid } from "../../ground/model/index.ts";

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
