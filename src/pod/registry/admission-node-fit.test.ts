import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { amountsOf, type IdentifiedPod, type Node, type PodSpec } from "../../ground/model/index.ts";
import { nodeFitHandler } from "./admission-node-fit.ts";

const node: Node = {
  metadata: { name: "n1", labels: { disk: "ssd", cores: "8" } },
  spec: { taints: [{ key: "maintenance", value: "yes", effect: "NoExecute" }] },
};
const tolerant: Partial<PodSpec> = { tolerations: [{ operator: "Exists" }] };
const handler = nodeFitHandler({
  node: () => ({ node, isConfirmed: true }),
  allocatable: () => amountsOf({ pods: "3", cpu: "2", memory: "1Gi", "example.com/gpu": "1" }),
});
const asking = (requests: Record<string, string>, name = "p"): IdentifiedPod =>
  testPod({ ...tolerant, containers: [testContainer("main", { resources: { requests } })] }, { name, uid: name });
const affine = (key: string, operator: string, values: string[] = []): IdentifiedPod =>
  testPod({
    ...tolerant,
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key, operator, values }] }],
        },
      },
    },
  });
const noAffinity = "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";

for (const [name, pod, others, wanted] of [
  ["fits", asking({ cpu: "1" }), [asking({ cpu: "1" }, "a")], "admitted"],
  [
    "too much cpu",
    asking({ cpu: "1500m" }),
    [asking({ cpu: "1" }, "a")],
    "OutOfcpu: Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000",
  ],
  [
    "too much memory",
    asking({ memory: "2Gi" }),
    [],
    "OutOfmemory: Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824",
  ],
  [
    "too many pods",
    asking({}),
    [asking({}, "a"), asking({}, "b"), asking({}, "c")],
    "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
  ],
  [
    "finished pods do not count",
    asking({ cpu: "2" }),
    [{ ...asking({ cpu: "2" }, "a"), status: { phase: "Succeeded" } }],
    "admitted",
  ],
  [
    "extended resource taken",
    asking({ "example.com/gpu": "1" }),
    [asking({ "example.com/gpu": "1" }, "a")],
    "OutOfexample.com/gpu: Node didn't have enough resource: example.com/gpu, requested: 1, used: 1, capacity: 1",
  ],
  ["extended resource the node does not list", asking({ "example.com/fpga": "1" }), [], "admitted"],
  ["node selector", testPod({ ...tolerant, nodeSelector: { disk: "ssd" } }), [], "admitted"],
  ["node selector of another node", testPod({ ...tolerant, nodeSelector: { disk: "hdd" } }), [], noAffinity],
  ["affinity In", affine("disk", "In", ["ssd"]), [], "admitted"],
  ["affinity NotIn", affine("disk", "NotIn", ["ssd"]), [], noAffinity],
  ["affinity Exists", affine("gpu", "Exists"), [], noAffinity],
  ["affinity DoesNotExist", affine("gpu", "DoesNotExist"), [], "admitted"],
  ["affinity Gt", affine("cores", "Gt", ["4"]), [], "admitted"],
  ["affinity Lt", affine("cores", "Lt", ["4"]), [], noAffinity],
  [
    "taint not tolerated",
    testPod(),
    [],
    "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
  ],
  [
    "taint tolerated by value",
    testPod({ tolerations: [{ key: "maintenance", operator: "Equal", value: "yes", effect: "NoExecute" }] }),
    [],
    "admitted",
  ],
  [
    "a static pod bears any taint",
    testPod({}, { annotations: { "kubernetes.io/config.source": "file" } }),
    [],
    "admitted",
  ],
] as const) {
  test(name, () => {
    const verdict = handler(pod, others);
    assert.equal(verdict.type === "rejected" ? `${verdict.reason}: ${verdict.message}` : verdict.type, wanted);
  });
}
