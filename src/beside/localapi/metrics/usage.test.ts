import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeUsage, podUsages } from "./usage.ts";

const time = "2026-01-01T00:00:00Z";
const known = { cpu: { time, usageNanoCores: 1_500_000 }, memory: { time, workingSetBytes: 2_000_000 } };
const shown = { cpu: "1500000n", memory: "1953Ki" };
const unknown = { cpu: { time }, memory: { time } };

test("a node's usage is told in cores and bytes once it is known", () => {
  assert.deepEqual(nodeUsage({ node: known }), { timestamp: time, usage: shown });
  assert.equal(nodeUsage({ node: unknown }), undefined);
  assert.equal(nodeUsage(undefined), undefined);
});

test("a pod is shown when all its containers are known, and has any", () => {
  const pod = (name: string, ...containers: readonly object[]): object => ({
    podRef: { namespace: "default", name },
    containers: containers.map((stats, index) => ({ name: `c${index}`, ...stats })),
  });
  const pods = [pod("whole", known, known), pod("half", known, unknown), pod("empty")];
  assert.deepEqual(podUsages({ pods }), [
    {
      namespace: "default",
      name: "whole",
      timestamp: time,
      containers: [
        { name: "c0", usage: shown },
        { name: "c1", usage: shown },
      ],
    },
  ]);
});
