import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { NodeCondition } from "../../../ground/model/index.ts";
import { pressureCondition, pressures } from "./conditions.ts";
import { readyCondition } from "./ready-condition.ts";

const earlier = "2026-01-01T00:00:00Z";
const now = "2026-01-01T00:00:10Z";

function run(compute: (context: Parameters<typeof readyCondition>[3]) => NodeCondition) {
  const events: string[] = [];
  const condition = compute({
    nodeName: "n",
    now,
    recordEvent: ({ type, reason, message }) => events.push(`${type} ${reason}: ${message}`),
  });
  return { condition, events };
}

describe("pressure", () => {
  for (const { name, under, free } of [
    {
      name: "memory",
      under: ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"],
      free: ["KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"],
    },
    {
      name: "disk",
      under: ["KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"],
      free: ["KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"],
    },
    {
      name: "pid",
      under: ["KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"],
      free: ["KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"],
    },
  ] as const) {
    for (const [isUnder, [reason, message, event]] of [
      [true, under],
      [false, free],
    ] as const) {
      test(`${name} ${isUnder ? "under" : "free"}: new`, () => {
        const { condition, events } = run((context) => pressureCondition(pressures[name], isUnder, undefined, context));
        const { type } = pressures[name];
        const status = isUnder ? "True" : "False";
        assert.deepEqual(condition, { type, status, lastHeartbeatTime: now, lastTransitionTime: now, reason, message });
        assert.deepEqual(events, [`Normal ${event}: Node n status is now: ${event}`]);
      });
    }
  }

  test("unchanged: only the heartbeat moves, even when somebody wrote another reason", () => {
    const known = { type: "DiskPressure", status: "False", reason: "Other", lastTransitionTime: earlier };
    const { condition, events } = run((context) => pressureCondition(pressures.disk, false, known, context));
    assert.deepEqual(condition, { ...known, lastHeartbeatTime: now });
    assert.deepEqual(events, []);
  });

  test("Unknown, as a controller writes it, counts as a change", () => {
    const known = { type: "DiskPressure", status: "Unknown", lastTransitionTime: earlier };
    const { condition, events } = run((context) => pressureCondition(pressures.disk, false, known, context));
    assert.equal(condition.status, "False");
    assert.equal(condition.lastTransitionTime, now);
    assert.equal(events.length, 1);
  });
});

describe("ready", () => {
  const known: NodeCondition = { type: "Ready", status: "True", lastTransitionTime: earlier };
  for (const { name, problems, before, expected, events: expectedEvents } of [
    {
      name: "new and well: no event",
      problems: [],
      before: undefined,
      expected: {
        status: "True",
        reason: "KubeletReady",
        message: "kubelet is posting ready status",
        lastTransitionTime: now,
      },
      events: [],
    },
    {
      name: "stays well",
      problems: [],
      before: known,
      expected: {
        status: "True",
        reason: "KubeletReady",
        message: "kubelet is posting ready status",
        lastTransitionTime: earlier,
      },
      events: [],
    },
    {
      name: "fails with one problem",
      problems: ["container runtime is down"],
      before: known,
      expected: {
        status: "False",
        reason: "KubeletNotReady",
        message: "container runtime is down",
        lastTransitionTime: now,
      },
      events: ["Normal NodeNotReady: Node n status is now: NodeNotReady"],
    },
    {
      name: "several problems, each once",
      problems: ["a", "b", "a"],
      before: { ...known, status: "False" },
      expected: { status: "False", reason: "KubeletNotReady", message: "[a, b]", lastTransitionTime: earlier },
      events: [],
    },
    {
      name: "recovers",
      problems: [],
      before: { ...known, status: "Unknown" },
      expected: {
        status: "True",
        reason: "KubeletReady",
        message: "kubelet is posting ready status",
        lastTransitionTime: now,
      },
      events: ["Normal NodeReady: Node n status is now: NodeReady"],
    },
  ]) {
    test(name, () => {
      const { condition, events } = run((context) => readyCondition(problems, undefined, before, context));
      assert.deepEqual(condition, { type: "Ready", lastHeartbeatTime: now, ...expected });
      assert.deepEqual(events, expectedEvents);
    });
  }

  test("a shortcoming is added to the message", () => {
    const { condition } = run((context) => readyCondition([], "CPU hardcapping unsupported", known, context));
    assert.equal(condition.message, "kubelet is posting ready status. WARNING: CPU hardcapping unsupported");
  });
});
