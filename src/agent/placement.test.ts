import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sized } from "../../test/support/pinned-pods.ts";
import { WholeAgent } from "../../test/support/whole-agent.ts";
import type { PodSpec } from "../ground/model/index.ts";

const settings = `cpuManagerPolicy: static
cpuManagerReconcilePeriod: 10s
kubeReserved: {cpu: "1500m"}
featureGates: {InPlacePodVerticalScaling: true}
`;

/** Where the containers of the pods run, as the runtime was told: "web/main": "1,9". */
function cpusets(whole: WholeAgent): Readonly<Record<string, string>> {
  const running = whole.runtime.containers().filter(({ life }) => life.step === "running");
  return Object.fromEntries(
    running.map(({ sandbox, config, resources }) => [
      `${sandbox.config.metadata?.name}/${config.metadata?.name}`,
      resources?.cpusetCpus ?? "",
    ]),
  );
}

const pinned = (text: string): Partial<PodSpec> => ({ containers: [sized("main", text)] });
const updates = (whole: WholeAgent): number => whole.runtime.callCounts().get("updateContainerResources") ?? 0;
const started = async (more = "", after?: WholeAgent): Promise<WholeAgent> => {
  const whole = await WholeAgent.start({ config: settings + more, ...(after === undefined ? {} : { after }) });
  mkdirSync(join(whole.directory, "root"), { recursive: true });
  return whole;
};
const stateOf = (whole: WholeAgent): string => readFileSync(join(whole.directory, "root/cpu_manager_state"), "utf8");

test("who asks for whole CPUs has them alone; all others are moved off them at once, and back when it is gone", async () => {
  await using whole = await started();
  whole.create("web");
  await whole.until("it runs", () => whole.running().length === 1);
  assert.deepEqual(cpusets(whole), { "web/main": "0-15" });
  whole.create("alone", pinned("2"));
  await whole.until("both run", () => whole.running().length === 2);
  await whole.until("the other was moved", () => cpusets(whole)["web/main"] === "0,2-8,10-15");
  assert.equal(cpusets(whole)["alone/main"], "1,9");
  assert.equal(updates(whole), 1);
  const alone = whole.runtime.containers().find(({ sandbox }) => sandbox.config.metadata?.name === "alone");
  assert.equal(alone?.config.linux?.resources?.cpuQuota, -1n, "who has CPUs needs no quota");
  assert.match(stateOf(whole), /"entries":\{"alone":\{"main":"1,9"\}\}/);
  const report = JSON.stringify(await whole.agent.parts.placed.report([whole.pod("alone") ?? {}]));
  assert.match(report, /"cpus":\{"reserved":"0,8","shared":"0,2-8,10-15","free":"2-7,10-15"\}/);
  assert.match(report, /"pod":"alone".*"cpus":"1,9","why":"Guaranteed, asks for 2 whole CPUs"/);
  const figures = await whole.agent.parts.base.metrics.figures.main.text();
  for (const line of [
    "kubelet_cpu_manager_pinning_requests_total 1",
    "kubelet_cpu_manager_pinning_errors_total 0",
    "kubelet_cpu_manager_shared_pool_size_millicores 12000",
    "kubelet_cpu_manager_exclusive_cpu_allocation_count 2",
    'kubelet_cpu_manager_allocation_per_numa{numa_node="0"} 2',
    'kubelet_cpu_manager_allocation_per_numa{numa_node="1"} 0',
    'kubelet_container_aligned_compute_resources_count{boundary="uncore_cache",scope="container"} 1',
    "kubelet_topology_manager_admission_requests_total 2",
    "kubelet_topology_manager_admission_errors_total 0",
    "kubelet_topology_manager_admission_duration_ms_count 2",
    "kubelet_memory_manager_pinning_requests_total 0",
  ]) {
    assert.ok(figures.split("\n").includes(line), line);
  }
  whole.delete("alone");
  await whole.until("it is gone", () => whole.pod("alone") === undefined);
  await whole.until("the other was moved back", () => cpusets(whole)["web/main"] === "0-15");
  assert.equal(updates(whole), 2);
});

test("a pod that can't have its CPUs is refused with the kubelet's words, and keeps nothing", async () => {
  await using whole = await started("cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n");
  whole.create("odd", pinned("3"));
  await whole.until("it is refused", () => whole.pod("odd")?.status?.phase === "Failed");
  assert.equal(whole.pod("odd")?.status?.reason, "SMTAlignmentError");
  assert.equal(
    whole.pod("odd")?.status?.message,
    "Pod was rejected: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
  );
  whole.create("even", pinned("14"));
  await whole.until("it runs", () => whole.running().length === 1);
  whole.create("late", pinned("2"));
  await whole.until("it is refused", () => whole.pod("late")?.status?.phase === "Failed");
  assert.equal(whole.pod("late")?.status?.reason, "SMTAlignmentError");
});

test("CPUs that are not on one NUMA node, where they must be", async () => {
  await using whole = await started("topologyManagerPolicy: single-numa-node\n");
  whole.create("wide", pinned("9"));
  await whole.until("it is refused", () => whole.pod("wide")?.status?.phase === "Failed");
  assert.equal(whole.pod("wide")?.status?.reason, "TopologyAffinityError");
  assert.equal(
    whole.pod("wide")?.status?.message,
    "Pod was rejected: Resources cannot be allocated with Topology locality",
  );
});

test("an agent that is started again refuses nobody who runs, moves nobody, and writes the same file", async () => {
  const options = "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\ntopologyManagerPolicy: restricted\n";
  const first = await started(options);
  first.create("large", pinned("8"));
  first.create("small", pinned("4"));
  first.create("web");
  await first.until("all run", () => first.running().length === 3);
  await first.until("the others were moved", () => cpusets(first)["web/main"] === "0,3,8,11");
  const before = { cpusets: cpusets(first), state: stateOf(first) };
  await first.stop();
  await using second = await started(options, first);
  await second.advance(30_000);
  assert.deepEqual(cpusets(second), before.cpusets);
  assert.equal(stateOf(second), before.state);
  assert.deepEqual(second.running(), ["large/main", "small/main", "web/main"]);
  // What somebody else changes is put right.
  const web = second.runtime.containers().find(({ sandbox }) => sandbox.config.metadata?.name === "web");
  assert.equal(web?.resources?.cpusetCpus, "0,3,8,11");
});

test("CPUs that somebody runs on are gone: the agent does not start, and says what to do", async () => {
  const first = await started();
  first.create("alone", pinned("2"));
  await first.until("it runs", () => first.running().length === 1);
  await first.stop();
  const path = join(first.directory, "root/cpu_manager_state");
  const other = settings.replace("1500m", "4");
  await using second = await WholeAgent.build({ config: other, after: first });
  second.run();
  await assert.rejects(
    second.until("it gives up", () => second.outcome !== undefined),
    /start cpu manager error: not all reserved cpus: "0-1,8-9" are present in defaultCpuSet: "0,2-8,10-15"/,
  );
  // Damaged, and nobody could tell any more who has what.
  writeFileSync(path, "{}x");
  await using third = await WholeAgent.build({ config: settings, after: first });
  third.run();
  await assert.rejects(
    third.until("it gives up", () => third.outcome !== undefined),
    /could not restore state from checkpoint: checkpoint is corrupted, please drain this node and delete/,
  );
});

test("a resize of CPUs that somebody has alone is infeasible", async () => {
  await using whole = await started();
  whole.create("alone", pinned("2"));
  await whole.until("it runs", () => whole.running().length === 1);
  whole.create("alone", pinned("4"));
  const pending = () => whole.pod("alone")?.status?.conditions?.find(({ type }) => type === "PodResizePending");
  await whole.until("it is told", () => pending() !== undefined);
  assert.equal(pending()?.reason, "Infeasible");
  assert.match(
    pending()?.message ?? "",
    /Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"/,
  );
  assert.equal(cpusets(whole)["alone/main"], "1,9");
});

test("memory of a NUMA node, after what is reserved there; a reservation that does not add up is refused", async () => {
  const memory = settings
    .replace('{cpu: "1500m"}', '{cpu: "1500m", memory: "500Mi"}')
    .concat('systemReserved: {memory: "424Mi"}\nmemoryManagerPolicy: Static\n');
  const reserved = (amount: string): string =>
    `${memory}reservedMemory: [{numaNode: 0, limits: {memory: ${amount}}}]\n`;
  // The 100Mi that hard eviction defends by default are part of the sum.
  await using whole = await WholeAgent.start({ config: reserved("1Gi") });
  mkdirSync(join(whole.directory, "root"), { recursive: true });
  whole.create("first", pinned("1 6Gi"));
  whole.create("second", pinned("1 6Gi"));
  whole.create("web");
  await whole.until("all run", () => whole.running().length === 3);
  const nodes = whole.runtime
    .containers()
    .map(({ sandbox, config }) => `${sandbox.config.metadata?.name} ${config.linux?.resources?.cpusetMems}`);
  assert.deepEqual(nodes.sort(), ["first 0", "second 1", "web "]);
  whole.create("third", pinned("1 5Gi"));
  await whole.until("it is refused", () => whole.pod("third")?.status?.phase === "Failed");
  assert.equal(whole.pod("third")?.status?.reason, "UnexpectedAdmissionError");
  assert.match(whole.pod("third")?.status?.message ?? "", /\[memorymanager\] failed to get the default NUMA affinity/);

  await using other = await WholeAgent.build({ config: reserved("924Mi") });
  other.run();
  await assert.rejects(
    other.until("it gives up", () => other.outcome !== undefined),
    /the total amount "924Mi" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature/,
  );
});
