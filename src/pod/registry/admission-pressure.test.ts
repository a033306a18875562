import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { type IdentifiedPod, isCriticalPod } from "../../ground/model/index.ts";
import { pressureHandler } from "./admission-pressure.ts";

const modest = testPod();
const asking = testPod({ containers: [testContainer("main", { resources: { requests: { memory: "1Mi" } } })] });
const tolerating = (key: string): IdentifiedPod =>
  testPod({ tolerations: [{ key, operator: "Exists", effect: "NoSchedule" }] });
const critical = testPod({ priority: 2_000_000_000 });
const disk = "The node had condition: [DiskPressure]. ";

for (const { name, pod, conditions, expected } of [
  { name: "no pressure", pod: modest, conditions: [], expected: "admitted" },
  {
    name: "memory, asks for nothing",
    pod: modest,
    conditions: ["MemoryPressure"],
    expected: "The node had condition: [MemoryPressure]. ",
  },
  { name: "memory, asks for some", pod: asking, conditions: ["MemoryPressure"], expected: "admitted" },
  {
    name: "memory, tolerates it",
    pod: tolerating("node.kubernetes.io/memory-pressure"),
    conditions: ["MemoryPressure"],
    expected: "admitted",
  },
  {
    name: "memory, tolerates something else",
    pod: tolerating("node.kubernetes.io/disk-pressure"),
    conditions: ["MemoryPressure"],
    expected: "The node had condition: [MemoryPressure]. ",
  },
  { name: "disk, asks for some", pod: asking, conditions: ["DiskPressure"], expected: disk },
  {
    name: "disk, tolerates it",
    pod: tolerating("node.kubernetes.io/disk-pressure"),
    conditions: ["DiskPressure"],
    expected: disk,
  },
  { name: "disk, critical", pod: critical, conditions: ["DiskPressure"], expected: "admitted" },
  {
    name: "memory and processes, asks for some",
    pod: asking,
    conditions: ["MemoryPressure", "PIDPressure"],
    expected: "The node had condition: [MemoryPressure PIDPressure]. ",
  },
]) {
  test(`admission under pressure: ${name}`, () => {
    const verdict = pressureHandler({ conditions: () => conditions, isCritical: isCriticalPod, mayWait: false })(
      pod,
      [],
    );
    if (verdict.type === "rejected") assert.deepEqual([verdict.reason, verdict.message], ["Evicted", expected]);
    else assert.equal(verdict.type, expected);
  });
}

test("admission under pressure: where nobody would make another one, a pod waits", () => {
  const node = { conditions: () => ["DiskPressure"], isCritical: () => false, mayWait: true };
  assert.deepEqual(pressureHandler(node)(modest, []), {
    type: "undecided",
    waitsFor: "the node to be free of DiskPressure",
  });
});
