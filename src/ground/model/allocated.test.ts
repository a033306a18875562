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
    { pod: "none", containers: { main: cpu("1"), plain: {} } },
  ],
  [
    "a promise stays, whatever is asked for since",
    testPod({ containers: [main("2")] }),
    { containers: { main: cpu("1") } },
    { pod: "none", containers: { main: cpu("1") } },
  ],
  [
    "nothing is a promise too",
    testPod({ containers: [main("2")], resources: cpu("2") }),
    { pod: "none", containers: { main: {} } },
    { pod: "none", containers: { main: {} } },
  ],
  [
    "init containers have promises as well",
    testPod({ initContainers: [init, sidecar("1")], containers: [plain] }),
    { containers: {} },
    { pod: "none", containers: { init: cpu("1"), sidecar: cpu("1"), plain: {} } },
  ],
  [
    "containers that are gone have none",
    testPod({ containers: [plain] }),
    { containers: { main: cpu("1") } },
    { pod: "none", containers: { plain: {} } },
  ],
  [
    "a name that every object knows is a name like any other",
    testPod({ containers: [testContainer("constructor")] }),
    { containers: {} },
    { pod: "none", containers: { ["constructor"]: {} } },
  ],
  [
    "a pod as a whole of which nobody has noted a promise is promised what it asks for",
    testPod({ containers: [plain], resources: cpu("2") }),
    { containers: { plain: {} } },
    { pod: cpu("2"), containers: { plain: {} } },
  ],
  [
    "a promise to the pod as a whole stays",
    testPod({ containers: [plain], resources: cpu("2") }),
    { pod: cpu("1"), containers: { plain: {} } },
    { pod: cpu("1"), containers: { plain: {} } },
  ],
];
for (const [name, pod, before, wanted] of promises) {
  test(`allocate: ${name}`, () => assert.deepEqual(allocate(pod, before), wanted));
}

const replaced: readonly (readonly [string, IdentifiedPod, AllocatedResources, IdentifiedPod])[] = [
  [
    "what was promised stands in place of what is asked for",
    testPod({ containers: [main("2"), plain] }),
    { containers: { main: cpu("1") } },
    testPod({ containers: [main("1"), plain] }),
  ],
  [
    "of sidecars as well",
    testPod({ initContainers: [sidecar("2")], containers: [plain] }),
    { containers: { sidecar: cpu("1") } },
    testPod({ initContainers: [sidecar("1")], containers: [plain] }),
  ],
  [
    "nothing was promised",
    testPod({ containers: [main("2")] }),
    { containers: { main: {} } },
    testPod({ containers: [testContainer("main", { resources: {} })] }),
  ],
  [
    "of the pod as a whole",
    testPod({ containers: [plain], resources: cpu("2") }),
    { pod: cpu("1"), containers: {} },
    testPod({ containers: [plain], resources: cpu("1") }),
  ],
  [
    "the pod as a whole was promised nothing",
    testPod({ containers: [plain], resources: cpu("2") }),
    { pod: "none", containers: {} },
    testPod({ containers: [plain] }),
  ],
];
for (const [name, pod, allocated, wanted] of replaced) {
  test(`with what is allocated: ${name}`, () => assert.deepEqual(withAllocated(pod, allocated), wanted));
}

const same: readonly (readonly [string, IdentifiedPod, AllocatedResources])[] = [
  ["it asks for what it was promised", testPod({ containers: [main("1")] }), { containers: { main: cpu("1") } }],
  ["it was promised nothing, and asks for nothing", testPod({ containers: [plain] }), { containers: { plain: {} } }],
  ["there is no promise", testPod({ initContainers: [init], containers: [main("1")] }), { containers: {} }],
  ["it has all as a whole", testPod({ containers: [plain], resources: cpu("1") }), { pod: cpu("1"), containers: {} }],
];
for (const [name, pod, allocated] of same) {
  test(`with what is allocated: the same pod when ${name}`, () => assert.equal(withAllocated(pod, allocated), pod));
}
