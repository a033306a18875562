import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, loadFile } from "../../../test/support/load-config.ts";
import { testPod } from "../../../test/support/pods.ts";
import type { IdentifiedPod } from "../../ground/model/index.ts";
import { planShutdown, type ShutdownGroup, shutdownGroups, totalSeconds } from "./plan.ts";

for (const [name, file, groups] of [
  ["off unless it is set", "", []],
  [
    "two periods",
    "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n",
    [
      [0, 20],
      [2_000_000_000, 10],
    ],
  ],
  [
    "one period for all",
    "shutdownGracePeriod: 30s\n",
    [
      [0, 30],
      [2_000_000_000, 0],
    ],
  ],
  [
    "whole seconds",
    "shutdownGracePeriod: 2500ms\nshutdownGracePeriodCriticalPods: 1s\n",
    [
      [0, 1],
      [2_000_000_000, 1],
    ],
  ],
  [
    "by priority, from the lowest up",
    "shutdownGracePeriodByPodPriority: [{priority: 100, shutdownGracePeriodSeconds: 5}, {priority: -1, shutdownGracePeriodSeconds: 3}]\n",
    [
      [-1, 3],
      [100, 5],
    ],
  ],
  ["gates off", "featureGates: {GracefulNodeShutdown: false, GracefulNodeShutdownBasedOnPodPriority: false}\n", []],
] as const) {
  test(`groups: ${name}`, async () => {
    const found = shutdownGroups(configOf(await loadFile(file, [])));
    assert.deepEqual(
      found,
      groups.map(([priority, seconds]) => ({ priority, seconds })),
    );
  });
}

const groups: readonly ShutdownGroup[] = [
  { priority: 0, seconds: 20 },
  { priority: 1_000, seconds: 10 },
  { priority: 2_000_000_000, seconds: 0 },
];

function pod(name: string, priority: number | undefined, graceSeconds: number | undefined): IdentifiedPod {
  const { spec, ...rest } = testPod({ ...(priority === undefined ? {} : { priority }) }, { name, uid: name });
  const { terminationGracePeriodSeconds: _, ...others } = spec;
  const own = graceSeconds === undefined ? {} : { terminationGracePeriodSeconds: graceSeconds };
  return { ...rest, spec: { ...others, ...own } };
}

for (const [name, priority, own, bucket, grace, isCutShort] of [
  ["no priority", undefined, 5, 0, 5, false],
  ["below the lowest", -10, 5, 0, 5, false],
  ["at a border", 1_000, 5, 1, 5, false],
  ["just below a border", 999, 5, 0, 5, false],
  ["above the highest", 2_000_001_000, 5, 2, 0, true],
  ["exactly its group's time", 0, 20, 0, 20, false],
  ["longer than its group's time", 0, 21, 0, 20, true],
  ["without a word about its grace", 1_500, undefined, 1, 10, false],
  ["no grace at all", 0, 0, 0, 0, false],
] as const) {
  test(`plan: ${name}`, () => {
    const plan = planShutdown(groups, [pod("a", priority, own)]);
    assert.deepEqual(
      plan.map(({ pods }) => pods.length),
      groups.map((_, index) => (index === bucket ? 1 : 0)),
    );
    const [ending] = plan[bucket]?.pods ?? [];
    assert.deepEqual([ending?.graceSeconds, ending?.isCutShort], [grace, isCutShort]);
  });
}

test("a plan keeps every pod once, in the order of the groups", () => {
  const pods = [7, 2_000_000_000, -3, 1_000, 0, 5_000].map((priority) => pod(`p${priority}`, priority, 30));
  const names = planShutdown(groups, pods).map((bucket) => bucket.pods.map((each) => each.pod.metadata.name));
  assert.deepEqual(names, [["p7", "p-3", "p0"], ["p1000", "p5000"], ["p2000000000"]]);
  assert.equal(totalSeconds(groups), 30);
});
