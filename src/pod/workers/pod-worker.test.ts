import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../ground/base/index.ts";
import type { IdentifiedPod, NodeDecision, PodStatus, PodUid } from "../../ground/model/index.ts";
import { StatusStore } from "../status/index.ts";
import { newPodWorker } from "./pod-worker.ts";

const evicted: NodeDecision = {
  reason: "Evicted",
  message: "The node was low on resource: memory.",
  disruption: undefined,
};

const cases: readonly {
  readonly name: string;
  readonly saved: PodStatus;
  readonly decision?: NodeDecision;
  readonly shown?: PodStatus;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly phase: string;
  readonly step: string;
}[] = [
  {
    name: "what this node saved is newer than what the API server was told",
    saved: { phase: "Running" },
    shown: { phase: "Pending" },
    phase: "Running",
    step: "running",
  },
  {
    name: "an end stands that the API server was told of and the disk had no room for",
    saved: { phase: "Running" },
    shown: { phase: "Succeeded" },
    phase: "Succeeded",
    step: "running",
  },
  {
    name: "nor is a pod taken off once more after that",
    saved: { phase: "Running" },
    decision: evicted,
    shown: { phase: "Failed" },
    phase: "Failed",
    step: "running",
  },
  {
    name: "one that is being taken off goes on going",
    saved: { phase: "Running" },
    decision: evicted,
    shown: { phase: "Running" },
    phase: "Running",
    step: "terminating",
  },
  {
    name: "an end that was saved stands, whatever the API server has heard",
    saved: { phase: "Failed" },
    shown: { phase: "Running" },
    phase: "Failed",
    step: "running",
  },
  {
    name: "the API server has no say in a static pod",
    saved: { phase: "Running" },
    shown: { phase: "Failed" },
    annotations: { "kubernetes.io/config.source": "file" },
    phase: "Running",
    step: "running",
  },
];

for (const { name, saved, decision, shown, annotations = {}, phase, step } of cases) {
  test(`after a restart of the agent: ${name}`, () => {
    const uid = "u1" as PodUid;
    const pod: IdentifiedPod = {
      metadata: { name: "p", namespace: "default", uid, annotations },
      spec: { containers: [] },
      ...(shown === undefined ? {} : { status: shown }),
    };
    const statuses = new StatusStore(silentLogger);
    const checkpoint = { status: saved, ...(decision === undefined ? {} : { decision }) };
    const worker = newPodWorker(uid, pod, {
      clock: new FakeClock(),
      statuses,
      checkpoints: { load: () => checkpoint, save: async () => {} },
      crashBackoff: { initialMs: 10_000, maxMs: 300_000 },
    });
    assert.deepEqual([statuses.get(uid)?.phase, worker.state.step], [phase, step]);
  });
}
