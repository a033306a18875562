// Resizes for which others have to go, and of pods that have to go, on virtual time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { both, conditions, container, given, pod, start } from "../../test/support/resizing.ts";
import type { TestEngine } from "../../test/support/test-engine.ts";
import type { IdentifiedPod, ResourceAmounts } from "../ground/model/index.ts";
import { nodeFitHandler } from "../pod/registry/admission-node-fit.ts";

const critical = 2_000_000_000;
const endsMs = 20_000;

/** Two CPUs, and containers named "slow" that take their time to end. */
async function twoCpus(): Promise<TestEngine> {
  const allocatable = (): ResourceAmounts =>
    new Map([
      ["cpu", 2_000_000_000n],
      ["pods", 100_000_000_000n],
    ]);
  const fits = nodeFitHandler({
    node: () => ({ node: { metadata: { name: "node" } }, isConfirmed: true }),
    allocatable,
  });
  const node = await start({ handlers: [fits], resizeSettings: { allocatable } });
  const onTerm = [
    { do: "sleep", ms: endsMs },
    { do: "exit", code: 0 },
  ] as const;
  node.runtime.behave("slow", { type: "runs", steps: [{ do: "sleepForever" }], onTerm });
  return node;
}

const asking = (name: string, main: string, cpu: string, generation: number, priority: number): IdentifiedPod =>
  pod([container(main, both({ cpu }))], generation, { name, priority, terminationGracePeriodSeconds: 30 });

const told = (node: TestEngine, name: string): readonly string[] =>
  node.events.filter((event) => event.startsWith(`${name} Resize`)).map((event) => event.split(":")[0] ?? "");

test("a critical pod gets what others have to go for when they are gone", async () => {
  await using node = await twoCpus();
  await node.want(asking("critical", "main", "900m", 1, critical), asking("victim", "slow", "900m", 1, 0));
  await node.until("they run", () => node.running().length === 2);
  await node.want(asking("critical", "main", "1500m", 2, critical));
  await node.advance(endsMs / 2);
  assert.equal(node.running().length, 2, "one of them is ending");
  assert.deepEqual(given(node, "main"), { shares: 921, quota: 90_000, memory: 0 });
  await node.until("it has it", () => node.container("critical", "main").resources?.limits?.["cpu"] === "1500m");
  assert.deepEqual(node.running(), ["critical/main"]);
  assert.deepEqual(conditions(node, "critical"), []);
  assert.deepEqual(told(node, "critical"), ["critical ResizeStarted", "critical ResizeCompleted"]);
  assert.equal(node.container("critical", "main").restartCount, 0);
});

test("nobody goes for a resize of a pod that has to go itself, and nothing is promised to it", async () => {
  await using node = await twoCpus();
  await node.want(
    asking("critical", "main", "600m", 1, critical + 1),
    asking("victim", "slow", "500m", 1, critical),
    asking("bystander", "calm", "900m", 1, 0),
  );
  await node.until("they run", () => node.running().length === 3);
  await node.want(asking("critical", "main", "1100m", 2, critical + 1));
  await node.advance(endsMs / 2);
  await node.want(asking("victim", "slow", "550m", 2, critical));
  await node.until("the victim is gone", () => node.phase("victim") === "Succeeded");
  await node.until("the other has it", () => node.container("critical", "main").resources?.limits?.["cpu"] === "1100m");
  assert.deepEqual(node.running(), ["bystander/calm", "critical/main"]);
  assert.deepEqual(told(node, "victim"), []);
  assert.deepEqual(conditions(node, "victim"), []);
});
