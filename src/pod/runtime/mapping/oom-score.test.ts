import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleContainer, examplePod } from "../../../../test/support/example-context.ts";
import type { Container, IdentifiedPod } from "../../../ground/model/index.ts";
import { oomScoreAdj } from "./oom-score.ts";

const capacity = 1000n << 20n;

function requesting(memory: string, fields: Partial<Container> = {}): Container {
  return exampleContainer({ resources: { requests: { memory } }, ...fields });
}

function score(container: Container, spec: Partial<IdentifiedPod["spec"]> = {}): number {
  return oomScoreAdj(examplePod({ containers: [container], ...spec }), container, capacity);
}

const all = { cpu: "1", memory: "1Mi" };
const guaranteed = exampleContainer({ resources: { requests: all, limits: all } });

for (const [name, container, spec, expected] of [
  ["best effort", exampleContainer(), {}, 1000],
  ["guaranteed", guaranteed, {}, -997],
  ["a tenth of the memory", requesting("100Mi"), {}, 900],
  ["a fraction is cut off the deduction", requesting("1000Ki"), {}, 999],
  ["cpu only: one better than best effort", exampleContainer({ resources: { requests: { cpu: "1" } } }), {}, 999],
  ["nearly everything", requesting("998Mi"), {}, 3],
  ["more than there is", requesting("5000Mi"), {}, 3],
  [
    "node-critical best effort",
    exampleContainer(),
    { priorityClassName: "system-node-critical", priority: 2_000_001_000 },
    -997,
  ],
  ["the class name without the priority", exampleContainer(), { priorityClassName: "system-node-critical" }, 1000],
  [
    "cluster-critical is not node-critical",
    exampleContainer(),
    { priorityClassName: "system-cluster-critical", priority: 2_000_000_000 },
    1000,
  ],
] as const) {
  test(`${name}: ${expected}`, () => assert.equal(score(container, spec), expected));
}

test("a static pod of the node-critical class needs no priority", () => {
  const pod = examplePod({ priorityClassName: "system-node-critical" });
  const annotations = { "kubernetes.io/config.source": "file" };
  const isStatic = { ...pod, metadata: { ...pod.metadata, annotations } };
  assert.equal(oomScoreAdj(isStatic, exampleContainer(), capacity), -997);
});

test("a sidecar is spared at least as long as the regular container with the smallest request", () => {
  const sidecar = (memory: string): Container => requesting(memory, { name: "side", restartPolicy: "Always" });
  const withSidecar = (memory: string): number => {
    const container = sidecar(memory);
    const pod = examplePod({
      containers: [requesting("300Mi"), requesting("200Mi")],
      initContainers: [container],
    });
    return oomScoreAdj(pod, container, capacity);
  };
  assert.equal(withSidecar("100Mi"), 800);
  assert.equal(withSidecar("500Mi"), 500);
});

test("a plain init container is judged by its own request", () => {
  const init = requesting("100Mi", { name: "init" });
  const pod = examplePod({ containers: [requesting("300Mi")], initContainers: [init] });
  assert.equal(oomScoreAdj(pod, init, capacity), 900);
});

test("what the pod requests beyond its containers is shared out among them", () => {
  const [a, b] = [requesting("100Mi", { name: "a" }), exampleContainer({ name: "b" })];
  const pod = examplePod({ containers: [a, b], resources: { requests: { memory: "500Mi" } } });
  assert.equal(oomScoreAdj(pod, a, capacity), 700);
  assert.equal(oomScoreAdj(pod, b, capacity), 800);
});

test("sidecars take part in the sharing", () => {
  const side = exampleContainer({ name: "side", restartPolicy: "Always" });
  const pod = examplePod({
    containers: [requesting("100Mi")],
    initContainers: [side],
    resources: { requests: { memory: "500Mi" } },
  });
  assert.equal(oomScoreAdj(pod, side, capacity), 700);
});

test("a pod-level request of cpu alone changes nothing", () => {
  const spec = { resources: { requests: { cpu: "1" } } };
  assert.equal(score(requesting("100Mi"), spec), 900);
});
