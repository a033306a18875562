import assert from "node:assert/strict";
import { test } from "node:test";
import { machineA } from "../../../test/support/made-up-topology.ts";
import { resourcesText } from "./resources-text.ts";

const gibi = 1024 ** 3;

test("who has what, and why", () => {
  const text = resourcesText({
    cpuManagerPolicy: "static",
    memoryManagerPolicy: "Static",
    topologyManagerPolicy: "restricted",
    topologyManagerScope: "pod",
    cpus: { reserved: "0,8", shared: "0,2-8,10-15", free: "2-7,10-15" },
    nodes: machineA.nodes.map(({ id, memoryBytes }) => ({
      id,
      cpus: id === 0 ? "0-3,8-11" : "4-7,12-15",
      exclusiveCpus: id === 0 ? "1,9" : "",
      freeCpus: id === 0 ? "2-3,10-11" : "4-7,12-15",
      memoryBytes,
      memory: { memory: { allocatable: 9 * gibi, free: 7 * gibi } },
      group: [0, 1],
    })),
    containers: [
      {
        namespace: "default",
        pod: "alone",
        uid: "u",
        container: "main",
        cpus: "1,9",
        memory: [{ nodes: [0, 1], type: "memory", bytes: 2 * gibi }],
        why: "Guaranteed, asks for 2 whole CPUs",
      },
      { uid: "gone", container: "main", why: "the pod is not known any more" },
    ],
  });
  assert.equal(
    text,
    `CPUs: static, memory: Static, topology: restricted (each pod)
Reserved CPUs: 0,8; shared by all who have none of their own: 0,2-8,10-15

NUMA NODE  CPUS       GIVEN  FREE       MEMORY  FREE MEMORY
0          0-3,8-11   1,9    2-3,10-11  10Gi    memory 7Gi of 9Gi; serves with nodes 0,1
1          4-7,12-15  -      4-7,12-15  10Gi    memory 7Gi of 9Gi; serves with nodes 0,1

POD            CONTAINER  CPUS    MEMORY             WHY
default/alone  main       1,9     memory 2Gi of 0,1  Guaranteed, asks for 2 whole CPUs
gone           main       shared  any                the pod is not known any more
`,
  );
});

test("a node without policies", () => {
  const text = resourcesText({
    cpuManagerPolicy: "none",
    memoryManagerPolicy: "None",
    topologyManagerPolicy: "none",
    topologyManagerScope: "container",
    nodes: [{ id: 0, cpus: "0-1", memoryBytes: gibi }],
    containers: [],
  });
  assert.equal(
    text,
    `CPUs: none, memory: None, topology: none

NUMA NODE  CPUS  GIVEN  FREE  MEMORY  FREE MEMORY
0          0-1   -      -     1Gi     -

No container has CPUs or memory of its own.
`,
  );
});
