import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container, PodSpec, ResourceRequirements } from "./kube/gen/types.ts";
import type { IdentifiedPod } from "./pod.ts";
import { computeQosClass, qosClassOf } from "./qos.ts";

const one = (resources: ResourceRequirements = {}): Container => ({ name: "c", resources });
const full = { cpu: "1", memory: "1Gi" };
const guaranteed = one({ requests: full, limits: full });

const table: readonly (readonly [string, PodSpec, string])[] = [
  ["no resources", { containers: [one()] }, "BestEffort"],
  ["no resources field", { containers: [{ name: "c" }] }, "BestEffort"],
  ["zero counts as absent", { containers: [one({ requests: { cpu: "0", memory: "0" } })] }, "BestEffort"],
  ["other resources do not count", { containers: [one({ limits: { "hugepages-2Mi": "2Mi" } })] }, "BestEffort"],
  ["requests equal limits", { containers: [guaranteed] }, "Guaranteed"],
  [
    "equal in value, not in text",
    { containers: [one({ requests: { cpu: "1000m", memory: "1024Mi" }, limits: full })] },
    "Guaranteed",
  ],
  ["limits without requests (not defaulted)", { containers: [one({ limits: full })] }, "Burstable"],
  ["requests only", { containers: [one({ requests: full })] }, "Burstable"],
  ["only cpu", { containers: [one({ requests: { cpu: "1" }, limits: { cpu: "1" } })] }, "Burstable"],
  ["request below limit", { containers: [one({ requests: { ...full, cpu: "500m" }, limits: full })] }, "Burstable"],
  ["one of two containers without", { containers: [guaranteed, one()] }, "Burstable"],
  ["two guaranteed", { containers: [guaranteed, guaranteed] }, "Guaranteed"],
  ["init container counts", { containers: [guaranteed], initContainers: [one()] }, "Burstable"],
  ["init container alone", { containers: [one()], initContainers: [one({ requests: { cpu: "1" } })] }, "Burstable"],
  [
    "ephemeral containers do not count",
    { containers: [guaranteed], ephemeralContainers: [{ name: "debug" }] },
    "Guaranteed",
  ],
  ["pod level equal", { containers: [one()], resources: { requests: full, limits: full } }, "Guaranteed"],
  ["pod level decides alone", { containers: [guaranteed], resources: { requests: { cpu: "1" } } }, "Burstable"],
  ["pod level partly limited", { containers: [one()], resources: { limits: { cpu: "1" } } }, "Burstable"],
  ["empty pod level", { containers: [guaranteed], resources: {} }, "BestEffort"],
];

for (const [name, spec, expected] of table) {
  test(`${name}: ${expected}`, () => assert.equal(computeQosClass(spec), expected));
}

test("a recorded class wins over the computed one", () => {
  const pod: IdentifiedPod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: { containers: [guaranteed] } };
  assert.equal(qosClassOf(pod), "Guaranteed");
  assert.equal(qosClassOf({ ...pod, status: { qosClass: "Burstable" } }), "Burstable");
  assert.equal(qosClassOf({ ...pod, status: { qosClass: "" } }), "Guaranteed");
});
