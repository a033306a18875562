import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { type AllocatedResources, allocate, withAllocated } from "./allocated.ts";
import type { IdentifiedPod } from "./pod.ts";

const cpu = (amount: string) => ({ requests: { cpu: amount } });
const main = (amount: string) => testContainer("main", { resources: cpu(amount) });
const sidecar = (amount: string) => testContainer("sidecar", { resources: cpu(amount), restartPolicy: "Always" });
const init = testContainer("init", { resources: cpu("1") });
const plain = testContainer("plain");

const promises: readonly (readonly [string, IdentifiedPod, AllocatedResources | undefined, AllocatedResources])[] = [
  [
    "a newcomer is promised what it asks for",
    testPod({ containers: [main("1"), plain] }),
    undefined,
    { main: cpu("1"), plain: {} },
  ],
  [
    "a promise stays, whatever is asked for since",
    testPod({ containers: [main("2")] }),
    { main: cpu("1") },
    { main: cpu("1") },
  ],
  ["nothing is a promise too", testPod({ containers: [main("2")] }), { main: {} }, { main: {} }],
  [
    "sidecars have promises, init containers that end have none",
    testPod({ initContainers: [init, sidecar("1")], containers: [plain] }),
    {},
    { sidecar: cpu("1"), plain: {} },
  ],
  ["containers that are gone have none", testPod({ containers: [plain] }), { main: cpu("1") }, { plain: {} }],
  [
    "a name that every object knows is a name like any other",
    testPod({ containers: [testContainer("constructor")] }),
    {},
    { constructor: {} },
  ],
];
for (const [name, pod, before, wanted] of promises) {
  test(`allocate: ${name}`, () => assert.deepEqual(allocate(pod, before), wanted));
}

const replaced: readonly (readonly [string, IdentifiedPod, AllocatedResources, IdentifiedPod])[] = [
  [
    "what was promised stands in place of what is asked for",
    testPod({ containers: [main("2"), plain] }),
    { main: cpu("1") },
    testPod({ containers: [main("1"), plain] }),
  ],
  [
    "of sidecars as well",
    testPod({ initContainers: [sidecar("2")], containers: [plain] }),
    { sidecar: cpu("1") },
    testPod({ initContainers: [sidecar("1")], containers: [plain] }),
  ],
  [
    "nothing was promised",
    testPod({ containers: [main("2")] }),
    { main: {} },
    testPod({ containers: [testContainer("main", { resources: {} })] }),
  ],
];
for (const [name, pod, allocated, wanted] of replaced) {
  test(`with what is allocated: ${name}`, () => assert.deepEqual(withAllocated(pod, allocated), wanted));
}

const same: readonly (readonly [string, IdentifiedPod, AllocatedResources])[] = [
  ["it asks for what it was promised", testPod({ containers: [main("1")] }), { main: cpu("1") }],
  ["it was promised nothing, and asks for nothing", testPod({ containers: [plain] }), { plain: {} }],
  ["there is no promise", testPod({ initContainers: [init], containers: [main("1")] }), {}],
];
for (const [name, pod, allocated] of same) {
  test(`with what is allocated: the same pod when ${name}`, () => assert.equal(withAllocated(pod, allocated), pod));
}
