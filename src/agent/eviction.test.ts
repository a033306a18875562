import assert from "node:assert/strict";
import { test } from "node:test";
import { WholeAgent } from "../../test/support/whole-agent.ts";
import { resources } from "../connections/kube/index.ts";
import { never } from "../ground/base/index.ts";
import { podCgroup } from "../ground/model/index.ts";
import type { EvictionDryRun } from "../node/eviction/dry-run.ts";
import { buildDryRuns } from "./build-dry-runs.ts";

const gibibyte = 2 ** 30;
const naming = { driver: "cgroupfs", root: "/", perQos: true } as const;

/** What the cgroup of a pod holds, besides that the machine uses it. */
function use(whole: WholeAgent, name: string, bytes: number): void {
  const uid = whole.pod(name)?.metadata?.uid ?? "";
  whole.pressure.workingSets.set(podCgroup(naming, "BestEffort", uid), bytes);
}

function condition(whole: WholeAgent, type: string): string | undefined {
  const node = whole.api.object(resources.nodes, { name: "node-1" });
  return node?.status?.conditions?.find((each) => each.type === type)?.status;
}

test("memory runs short: a pod is evicted, the Node says so at once, and no pod without a request is taken", async () => {
  await using whole = await WholeAgent.start();
  for (const name of ["greedy", "modest"]) whole.create(name);
  await whole.until("both run", () => whole.running().length === 2);
  use(whole, "greedy", 8 * gibibyte);
  use(whole, "modest", 1000);
  whole.pressure.workingSets.set("/", 16 * gibibyte - 50 * 2 ** 20);
  for (const alarm of whole.pressure.alarms) alarm();
  await whole.advance(500);
  assert.equal(condition(whole, "MemoryPressure"), "True");
  whole.pressure.workingSets.set("/", 8 * gibibyte);
  await whole.advance(10_000);
  const { status } = whole.pod("greedy") ?? {};
  // Its container ended well when it was asked to.
  assert.deepEqual([status?.phase, status?.reason, status?.message], ["Succeeded", undefined, undefined]);
  const target = status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  assert.equal(target?.reason, "TerminationByKubelet");
  assert.match(
    target?.message ?? "",
    /^The node was low on resource: memory\. Threshold quantity: 100Mi, available: 50Mi\. /,
  );
  assert.equal(whole.pod("modest")?.status?.phase, "Running");
  whole.create("late");
  await whole.advance(5_000);
  assert.equal(whole.pod("late")?.status?.message, "Pod was rejected: The node had condition: [MemoryPressure]. ");
  await whole.advance(300_000);
  assert.equal(condition(whole, "MemoryPressure"), "False");
});

test("dry runs of a running agent: who would go, what would be removed, what a drain would do; nothing happens", async () => {
  await using whole = await WholeAgent.start();
  for (const name of ["greedy", "modest"]) whole.create(name);
  await whole.until("both run", () => whole.running().length === 2);
  use(whole, "greedy", 8 * gibibyte);
  use(whole, "modest", 1000);
  await whole.advance(20_000);
  const runs = buildDryRuns(whole.agent.parts);
  const ask = async (name: string, question: string): Promise<unknown> =>
    await runs.get(name)?.(new URLSearchParams(question), never);
  const calm = (await ask("evict", "")) as EvictionDryRun;
  assert.deepEqual([calm.outcome, calm.victims], ["nothing to do", []]);
  const pressed = (await ask("evict", "signal=memory.available=50Mi")) as EvictionDryRun;
  assert.equal(pressed.outcome, "enough");
  // What is only pretended has no rate, so that the usual second of a hard threshold is left to the pod.
  assert.deepEqual(
    pressed.victims.map(({ pod, frees, graceSeconds }) => [pod, frees, graceSeconds]),
    [["default/greedy", "8Gi", 1]],
  );
  await assert.rejects(
    ask("evict", "signal=memory=50Mi"),
    /there is no signal "memory"; there are memory\.available, /,
  );
  const collected = (await ask("gc", "all=1")) as { images: { stays: readonly { because: string }[] } };
  assert.ok(collected.images.stays.some(({ because }) => /^container \S+ of default\/\S+ uses it$/.test(because)));
  const parts = async (question: string): Promise<readonly string[]> =>
    Object.keys((await ask("gc", question)) as object).filter((key) => key !== "apiVersion" && key !== "kind");
  assert.deepEqual(await parts(""), ["images", "containers", "logs", "pods"]);
  for (const part of ["images", "containers", "logs", "pods"]) assert.deepEqual(await parts(`${part}=true`), [part]);
  assert.deepEqual(await parts("logs=true&pods=true&all=true"), ["logs", "pods"]);
  const drained = (await ask("drain", "timeout=1s")) as { goes: readonly { pod: string; isOverTime: boolean }[] };
  assert.deepEqual(drained.goes.map(({ pod }) => pod).sort(), ["default/greedy", "default/modest"]);
  assert.equal(whole.running().length, 2);
});
