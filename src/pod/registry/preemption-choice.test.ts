import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { amountsOf, type IdentifiedPod, type PodUid } from "../../ground/model/index.ts";
import { nodeFitHandler } from "./admission-node-fit.ts";

type Requests = Readonly<Record<string, string>>;

function pod(name: string, resources: { requests?: Requests; limits?: Requests }, priority?: number): IdentifiedPod {
  const containers = [testContainer("main", { resources })];
  return testPod({ containers, ...(priority === undefined ? {} : { priority }) }, { name, uid: name as PodUid });
}

const burstable = (name: string, requests: Requests, priority = 0): IdentifiedPod => pod(name, { requests }, priority);
const guaranteed = (name: string, amounts: Requests, priority = 0): IdentifiedPod =>
  pod(name, { requests: amounts, limits: amounts }, priority);
const bestEffort = (name: string, priority = 0): IdentifiedPod => pod(name, {}, priority);
const critical = (requests: Requests): IdentifiedPod => burstable("critical", requests, 2_000_000_000);

const handler = nodeFitHandler({
  node: () => ({
    node: { metadata: { name: "n1" }, spec: { taints: [{ key: "away", effect: "NoExecute" }] } },
    isConfirmed: true,
  }),
  allocatable: () => amountsOf({ pods: "4", cpu: "1", memory: "1000" }),
});
const tolerant = (wanted: IdentifiedPod): IdentifiedPod => ({
  ...wanted,
  spec: { ...wanted.spec, tolerations: [{ operator: "Exists" }] },
});

for (const [name, others, requests, victims] of [
  ["there is room", [burstable("a", { cpu: "500m" })], { cpu: "500m" }, []],
  ["one pod suffices", [burstable("a", { cpu: "400m" }), burstable("b", { cpu: "600m" })], { cpu: "500m" }, ["b"]],
  [
    "the one that comes closest",
    [burstable("a", { cpu: "300m" }), burstable("b", { cpu: "700m" })],
    { cpu: "200m" },
    ["a"],
  ],
  [
    "several where none suffices",
    [burstable("a", { cpu: "400m" }), burstable("b", { cpu: "600m" })],
    { cpu: "900m" },
    ["b", "a"],
  ],
  [
    "as few guaranteed ones as possible",
    [guaranteed("g", { cpu: "600m", memory: "100" }), burstable("b", { cpu: "400m" })],
    { cpu: "300m" },
    ["b"],
  ],
  [
    "a guaranteed one where the others do not suffice",
    [guaranteed("g", { cpu: "800m", memory: "100" }), burstable("b", { cpu: "100m" }), burstable("c", { cpu: "100m" })],
    { cpu: "900m" },
    ["b", "g"],
  ],
  [
    "what was promised nothing frees nothing but its place",
    [bestEffort("x"), burstable("a", { cpu: "1" })],
    { cpu: "1" },
    ["a"],
  ],
  [
    "of equals the one with less memory",
    [burstable("a", { cpu: "500m", memory: "200" }), burstable("b", { cpu: "500m", memory: "100" })],
    { cpu: "500m" },
    ["b"],
  ],
  [
    "a place for a pod",
    [bestEffort("w"), bestEffort("x"), bestEffort("y"), burstable("z", { cpu: "100m" })],
    {},
    ["w"],
  ],
  [
    "two resources at once",
    [burstable("a", { cpu: "1" }), burstable("b", { memory: "1000" })],
    { cpu: "500m", memory: "500" },
    ["a", "b"],
  ],
] as const) {
  test(`room for a critical pod: ${name}`, () => {
    const verdict = handler(tolerant(critical(requests)), others);
    assert.ok(verdict.type === "admitted", JSON.stringify(verdict));
    assert.deepEqual(
      (verdict.preempts?.victims ?? []).map(({ metadata }) => metadata.name).toSorted(),
      [...victims].toSorted(),
    );
  });
}

test("other critical pods and static ones stay", () => {
  const peer = burstable("peer", { cpu: "600m" }, 2_000_000_000);
  const fixed = testPod(
    { containers: [testContainer("main", { resources: { requests: { cpu: "300m" } } })] },
    { name: "fixed", uid: "fixed" as PodUid, annotations: { "kubernetes.io/config.source": "file" } },
  );
  const verdict = handler(tolerant(critical({ cpu: "250m" })), [peer, fixed]);
  assert.deepEqual(verdict, {
    type: "rejected",
    reason: "UnexpectedAdmissionError",
    message:
      "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 150), ]",
  });
});

test("one of lower priority gives way even if it is critical itself", () => {
  const peer = burstable("peer", { cpu: "600m" }, 2_000_000_000);
  const higher = tolerant(burstable("higher", { cpu: "600m" }, 2_000_001_000));
  const verdict = handler(higher, [peer]);
  assert.deepEqual(verdict.type === "admitted" && verdict.preempts?.victims.map(({ metadata }) => metadata.name), [
    "peer",
  ]);
});

test("nobody has to go for a critical pod that does not belong here", () => {
  const verdict = handler(critical({ cpu: "500m" }), [burstable("a", { cpu: "1" })]);
  assert.equal(verdict.type === "rejected" && verdict.reason, "TaintToleration");
});

test("a pod that is not critical takes nobody's place, whatever its priority", () => {
  const verdict = handler(tolerant(burstable("big", { cpu: "1" }, 1_000_000)), [burstable("a", { cpu: "1" })]);
  assert.equal(verdict.type === "rejected" && verdict.reason, "OutOfcpu");
});
