import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { testPod } from "../../../test/support/pods.ts";
import type { PodStatus } from "../../ground/model/index.ts";
import { type Eviction, evict } from "./evict.ts";

const message = 'Usage of EmptyDir volume "a" exceeds the limit "1Mi". ';
const before: PodStatus = { phase: "Running", podIP: "10.0.0.1" };
const failed = { podIP: "10.0.0.1", phase: "Failed", reason: "Evicted", message };
const disruption = {
  type: "DisruptionTarget",
  status: "True",
  reason: "TerminationByKubelet",
  message,
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

for (const { name, eviction, request, status } of [
  {
    name: "for its own fault",
    eviction: { signal: "emptydirfs.limit", grace: 1, isDisruption: false },
    request: "grace 1",
    status: failed,
  },
  {
    name: "because the node runs short",
    eviction: { signal: "memory.available", grace: 30, isDisruption: true },
    request: "grace 30",
    status: { ...failed, conditions: [disruption] },
  },
  {
    name: "when there is no time to ask",
    eviction: { signal: "memory.available", grace: "at once", isDisruption: true },
    request: "grace 0 at once",
    status: { ...failed, conditions: [disruption] },
  },
] satisfies readonly { eviction: Omit<Eviction, "message">; [other: string]: unknown }[]) {
  test(`a pod evicted ${name}: status, event and metric say why`, () => {
    const said: string[] = [];
    evict(
      testPod({}, { uid: "u" }),
      { ...eviction, message },
      {
        clock: new FakeClock(),
        recordEvent: (_, { type, reason, message: text }) => said.push(`${type} ${reason} ${text}`),
        onEvicted: (signal) => said.push(signal),
        endPod: (pod, { graceSeconds, atOnce, amendStatus }) => {
          assert.deepEqual(amendStatus(before), status);
          said.push(`${pod.metadata.uid} grace ${graceSeconds}${atOnce ? " at once" : ""}`);
        },
      },
    );
    assert.deepEqual(said, [eviction.signal, `Warning Evicted ${message}`, `u ${request}`]);
  });
}
