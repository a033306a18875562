import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { settleFiles } from "../../../../test/support/fake-clock.ts";
import { MadeUpNode } from "../../../../test/support/made-up-node.ts";
import type { MemoryUsage } from "../../../connections/host/index.ts";
import { presentSummaryOf, shortSummaryOf, summaryOf } from "./summary.ts";
import { usageParts } from "./summary-parts.ts";
import type { Summary } from "./summary-types.ts";

const never = new AbortController().signal;

/** Takes a summary while time goes on, as it does when there is no rate yet. */
async function take(node: MadeUpNode, read: typeof summaryOf = summaryOf): Promise<Summary> {
  let taken: Summary | undefined;
  let failure: unknown;
  const taking = read(node.statistics, never).then(
    (summary) => {
      taken = summary;
    },
    (error: unknown) => {
      failure = error;
    },
  );
  for (let round = 0; round < 100 && taken === undefined && failure === undefined; round++) {
    await settleFiles();
    await node.clock.advance(100);
  }
  await taking;
  if (failure !== undefined) throw failure;
  // As the client gets it: what is undefined is not there.
  return JSON.parse(JSON.stringify(taken)) as Summary;
}

test("the whole schema: node, system containers, pod, container", async () => {
  await using node = new MadeUpNode();
  const { uid } = node.addPod("web");
  const { node: machine, pods } = await take(node);
  const psi = {
    full: { total: 1e9, avg10: 0, avg60: 0, avg300: 0 },
    some: { total: 3e9, avg10: 1, avg60: 0.5, avg300: 0.25 },
  };
  assert.equal(machine.nodeName, "made-up");
  assert.equal(machine.startTime, "2023-11-14T22:13:20Z");
  assert.deepEqual(
    machine.systemContainers?.map(({ name, startTime }) => [name, name === "kubelet" ? startTime : ""]),
    [
      ["kubelet", "2023-11-14T22:15:00Z"],
      ["pods", ""],
    ],
  );
  assert.equal(machine.cpu?.usageCoreNanoSeconds, 1000e9);
  assert.equal(machine.cpu?.usageNanoCores, 0);
  assert.deepEqual(machine.io?.psi, psi);
  assert.equal(machine.memory?.workingSetBytes, 1_500_000_000);
  assert.equal(machine.memory?.availableBytes, 4_096_000_000 - 1_500_000_000);
  assert.deepEqual([machine.swap?.swapUsageBytes, machine.swap?.swapAvailableBytes], [614_400, 409_600]);
  assert.deepEqual([machine.network?.name, machine.network?.rxBytes, machine.network?.txBytes], ["eth0", 5000, 7000]);
  assert.equal(machine.network?.interfaces.length, 1);
  assert.ok((machine.fs?.capacityBytes ?? 0) > 0 && (machine.fs?.inodes ?? 0) > 0);
  assert.equal(machine.runtime?.imageFs?.usedBytes, 123_456);
  // What is free on the real disk changes between the two looks.
  const steady = (fs: typeof machine.fs) => ({ ...fs, availableBytes: 0, inodesFree: 0 });
  assert.deepEqual(steady(machine.runtime?.containerFs), steady(machine.runtime?.imageFs));
  assert.deepEqual([machine.rlimit?.maxpid, machine.rlimit?.curproc], [32_768, 345]);

  assert.equal(pods?.length, 1);
  const [pod] = pods ?? [];
  assert.deepEqual(pod?.podRef, { name: "web", namespace: "default", uid });
  assert.equal(pod?.startTime, "2023-11-14T22:16:40Z");
  assert.equal(pod?.memory?.availableBytes, 50_000_000);
  assert.deepEqual(pod?.cpu?.psi, psi);
  assert.equal(pod?.network?.rxBytes, 100);
  assert.deepEqual(pod?.process_stats, { process_count: 1 });
  assert.equal(pod?.volume, undefined);
  const [container] = pod?.containers ?? [];
  assert.equal(container?.name, "main");
  assert.equal(container?.startTime, "2023-11-14T22:16:41Z");
  assert.deepEqual(
    [container?.memory?.usageBytes, container?.memory?.workingSetBytes, container?.memory?.rssBytes],
    [50_000_000, 40_000_000, 40_000_000],
  );
  assert.deepEqual([container?.swap?.swapUsageBytes, container?.swap?.swapAvailableBytes], [4096, 4096]);
  assert.deepEqual([container?.rootfs?.usedBytes, container?.rootfs?.inodesUsed], [4096, 3]);
  assert.equal(container?.logs?.usedBytes, 8192);
  assert.equal(pod?.["ephemeral-storage"]?.usedBytes, 4096 + 8192);
  for (const section of [container?.cpu, container?.memory, container?.rootfs, pod?.cpu, machine.cpu, machine.fs]) {
    assert.match(section?.time ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  }
});

test("where the kernel measures no pressure, none is shown as zeros; page faults are the cgroup's own", () => {
  const share = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
  const memory = { pageFaults: 900, majorPageFaults: 90, ownPageFaults: { minor: 5, major: 1 } } as MemoryUsage;
  const cpu = { usageNanoseconds: 1, userNanoseconds: 0, systemNanoseconds: 0 };
  const sample = { path: "/a", at: 0, cpu, nanoCores: 0, memory, pressures: undefined };
  const unmeasured = { cpu: undefined, memory: undefined, io: undefined };
  const shown = usageParts({ ...sample, pressures: unmeasured });
  assert.deepEqual(shown.cpu?.psi, { full: share, some: share });
  assert.deepEqual(shown.memory?.psi, { full: share, some: share });
  assert.deepEqual([shown.memory?.pageFaults, shown.memory?.majorPageFaults], [5, 1]);
  const off = usageParts({ ...sample, memory: { ...memory, ownPageFaults: undefined } });
  assert.deepEqual([off.cpu?.psi, off.memory?.psi], [undefined, undefined]);
  assert.deepEqual([off.memory?.pageFaults, off.memory?.majorPageFaults], [900, 90]);
});

test("rates come from two looks: at once for a pod that was never seen, over the time between later", async () => {
  await using node = new MadeUpNode();
  const { pathOf } = node.addPod("web");
  const use = { memoryBytes: 1, inactiveFileBytes: 0 };
  const first = await take(node);
  assert.equal(first.pods?.[0]?.containers[0]?.cpu?.usageNanoCores, 0);
  node.use(pathOf("main"), { ...use, cpuSeconds: 15 });
  await node.clock.advance(10_000);
  const later = await take(node);
  const rate = later.pods?.[0]?.containers[0]?.cpu?.usageNanoCores ?? 0;
  // Five seconds of work since the look before, which was ten seconds and a bit ago.
  assert.ok(rate > 0.4e9 && rate <= 0.5e9, String(rate));
});

test("who reckons rates by itself gets the counters of this moment, however short the last look is ago", async () => {
  await using node = new MadeUpNode();
  const { pathOf } = node.addPod("web");
  const counted = async (read: typeof summaryOf) =>
    (await read(node.statistics, never)).pods?.[0]?.containers[0]?.cpu?.usageCoreNanoSeconds;
  await take(node, shortSummaryOf);
  node.use(pathOf("main"), { cpuSeconds: 15, memoryBytes: 1, inactiveFileBytes: 0 });
  assert.notEqual(await counted(shortSummaryOf), 15e9, "that one is some seconds old");
  assert.equal(await counted(presentSummaryOf), 15e9);
});

test("only_cpu_and_memory leaves out all else and asks the runtime nothing", async () => {
  await using node = new MadeUpNode();
  node.addPod("web");
  const { node: machine, pods } = await take(node, shortSummaryOf);
  assert.deepEqual(Object.keys(machine).sort(), ["cpu", "memory", "nodeName", "startTime", "swap", "systemContainers"]);
  const [pod] = pods ?? [];
  assert.deepEqual(Object.keys(pod ?? {}).sort(), ["containers", "cpu", "memory", "podRef", "startTime", "swap"]);
  assert.deepEqual(Object.keys(pod?.containers[0] ?? {}).sort(), ["cpu", "memory", "name", "startTime", "swap"]);
  assert.equal(node.calls, 0);
});

test("no pods is null, as upstream's readers expect", async () => {
  await using node = new MadeUpNode();
  assert.equal((await take(node)).pods, null);
});

test("volumes: measured once in a period, in the background after that, with their claims", async () => {
  await using node = new MadeUpNode();
  const { uid } = node.addPod("db");
  const usage = {
    capacityBytes: 1000n,
    availableBytes: 600n,
    usedBytes: 400n,
    inodes: 100n,
    inodesFree: 96n,
    inodesUsed: 4n,
  };
  node.volumes.set(uid, [
    { name: "data", usage, claim: { namespace: "default", name: "c" }, isLocalEphemeral: false },
    { name: "scratch", usage, claim: undefined, isLocalEphemeral: true },
  ]);
  const first = (await take(node)).pods?.[0];
  assert.deepEqual(
    first?.volume?.map(({ name, pvcRef, usedBytes }) => [name, pvcRef, usedBytes]),
    [
      ["data", { namespace: "default", name: "c" }, 400],
      ["scratch", undefined, 400],
    ],
  );
  assert.equal(first?.["ephemeral-storage"]?.usedBytes, 4096 + 8192 + 400);
  node.volumes.set(uid, [
    { name: "data", usage: { ...usage, usedBytes: 900n }, claim: undefined, isLocalEphemeral: false },
  ]);
  await take(node);
  assert.equal(node.measured, 1);
  await node.clock.advance(60_000);
  await take(node);
  await settleFiles();
  assert.equal((await take(node)).pods?.[0]?.volume?.[0]?.usedBytes, 900);
  assert.equal(node.measured, 2);
});

test("volumes that can't be measured leave the rest as it is", async () => {
  await using node = new MadeUpNode();
  const { uid } = node.addPod("db");
  node.brokenVolumes.add(uid);
  const [pod] = (await take(node)).pods ?? [];
  assert.equal(pod?.volume, undefined);
  assert.equal(pod?.["ephemeral-storage"]?.usedBytes, 4096 + 8192);
});

test("a period of 0 measures no volumes", async () => {
  await using node = new MadeUpNode({ volumePeriodMs: 0 });
  node.addPod("db");
  assert.equal((await take(node)).pods?.[0]?.volume, undefined);
  assert.equal(node.measured, 0);
});

test("many who ask at once cost one look", async () => {
  await using node = new MadeUpNode();
  for (let index = 0; index < 30; index++) node.addPod(`pod-${index}`);
  await take(node);
  const before = node.calls;
  await node.clock.advance(60_000);
  const summaries = await Promise.all(Array.from({ length: 10 }, () => summaryOf(node.statistics, never)));
  assert.ok(summaries.every(({ pods }) => pods?.length === 30));
  // One for the file systems, one for the layers of containers.
  assert.equal(node.calls - before, 2);
});

test("a container whose cgroup can't be found is told of by the runtime", async () => {
  await using node = new MadeUpNode();
  const { podPath, pathOf } = node.addPod("odd");
  assert.ok(pathOf("main").startsWith(podPath));
  rmSync(`${node.files.root}/cg${pathOf("main")}`, { recursive: true });
  const [container] = (await take(node)).pods?.[0]?.containers ?? [];
  assert.deepEqual([container?.cpu?.usageCoreNanoSeconds, container?.memory?.workingSetBytes], [1e9, 1e6]);
  assert.equal(container?.cpu?.usageNanoCores, 0);
});

test("a pod that is gone is in no later summary", async () => {
  await using node = new MadeUpNode();
  node.addPod("a");
  node.addPod("b");
  assert.equal((await take(node)).pods?.length, 2);
  node.removePod("a");
  await node.clock.advance(10_000);
  assert.deepEqual(
    (await take(node)).pods?.map(({ podRef }) => podRef.name),
    ["b"],
  );
});

test("a disk that can't be read fails the whole with the words clients know", async () => {
  await using node = new MadeUpNode({ rootDir: "/nonexistent" });
  await assert.rejects(take(node), /^Error: failed to get rootFs stats: ENOENT/);
});
