import assert from "node:assert/strict";
import { test } from "node:test";
import { hard, Mi, nodefs, observations, seen, threshold } from "../../../../test/support/eviction-plan.ts";
import { testContainer, testPod } from "../../../../test/support/pods.ts";
import type { EvictionThreshold } from "../../../ground/config/index.ts";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import { evictionWords } from "./message.ts";
import { wantedText } from "./threshold-amounts.ts";
import type { PodUse } from "./usage.ts";

const spent = (use: PodUse | undefined, pod: IdentifiedPod, of: EvictionThreshold, available: number) =>
  evictionWords(
    pod,
    use,
    of.signal === "pid.available" ? "pids" : of.signal.startsWith("memory") ? "memory" : "ephemeral-storage",
    {
      acting: [of],
      observations: observations(seen(of.signal, available)),
    },
  );

test("words: who used more than asked for is named, in status and annotations", () => {
  const pod = testPod({
    containers: [
      testContainer("a", { resources: { requests: { memory: "10Mi" } } }),
      testContainer("b", { resources: { requests: { memory: "100Mi" } } }),
      testContainer("c"),
    ],
  });
  const containers = [
    { name: "a", memoryBytes: 20 * Mi },
    { name: "b", memoryBytes: 20 * Mi },
    { name: "c", memoryBytes: 4096 },
  ];
  assert.deepEqual(spent({ memoryBytes: 1, containers }, pod, hard, 96 * 1024), {
    message:
      "The node was low on resource: memory. Threshold quantity: 100Mi, available: 96Ki. " +
      "Container a was using 20Mi, request is 10Mi, has larger consumption of memory. " +
      "Container c was using 4Ki, request is 0, has larger consumption of memory. ",
    annotations: {
      offending_containers: "a,c",
      offending_containers_usage: "20Mi,4Ki",
      starved_resource: "memory",
    },
  });
});

test("words: a pod that asks as a whole is named as a whole", () => {
  const pod = testPod(
    { containers: [testContainer("a")], resources: { requests: { memory: "64Mi" } } },
    { name: "whole" },
  );
  const { message, annotations } = spent({ memoryBytes: 80 * Mi, containers: [] }, pod, hard, 5);
  assert.match(message, /Pod whole was using 80Mi, request is 64Mi, has larger consumption of memory\. $/);
  assert.deepEqual([annotations["offending_pod"], annotations["offending_pod_usage"]], ["whole", "80Mi"]);
});

test("words: a share is shown as an amount, and files and processes name no container", () => {
  assert.equal(wantedText(threshold("nodefs.available", "10%"), { available: 1, capacity: 1024 * Mi }), "107374184");
  const pids = threshold("pid.available", "1k");
  const { message } = spent({ tasks: 5, containers: [{ name: "main", memoryBytes: 5 }] }, testPod(), pids, 12);
  assert.equal(message, "The node was low on resource: pids. Threshold quantity: 1k, available: 12. ");
});

test("words: of a pod that was not measured, only the node is told of", () => {
  const { message, annotations } = spent(undefined, testPod(), nodefs, Mi);
  assert.equal(message, "The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: 1Mi. ");
  assert.deepEqual(annotations, {});
});
