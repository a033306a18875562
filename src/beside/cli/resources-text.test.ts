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

test("which claims pods use", () => {
  const text = resourcesText({
    cpuManagerPolicy: "none",
    memoryManagerPolicy: "None",
    topologyManagerPolicy: "none",
    topologyManagerScope: "container",
    nodes: [],
    containers: [],
    claims: [
      {
        namespace: "default",
        name: "gpus",
        pods: ["default/a", "b-uid"],
        drivers: [
          { driver: "gpu.example.com", isRegistered: true, devices: [{ pool: "node-1", device: "gpu-0" }] },
          { driver: "nic.example.com", isRegistered: false, devices: [] },
        ],
      },
    ],
  });
  assert.equal(
    text.slice(text.indexOf("CLAIM")),
    `CLAIM         PODS              DRIVER                            DEVICES
default/gpus  default/a, b-uid  gpu.example.com                   node-1/gpu-0
default/gpus  default/a, b-uid  nic.example.com (not registered)  not prepared
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

test("devices: who has which, how they are, where they lie, and that a plugin can't write to the terminal", () => {
  const text = resourcesText({
    cpuManagerPolicy: "none",
    memoryManagerPolicy: "None",
    topologyManagerPolicy: "none",
    topologyManagerScope: "container",
    nodes: [{ id: 0, cpus: "0-1", memoryBytes: gibi }],
    containers: [],
    devices: [
      {
        resource: "vendor.com/gpu",
        plugin: "registered",
        listed: 103,
        healthy: 102,
        given: 1,
        free: 101,
        notShown: 100,
        devices: [
          {
            id: "gpu-0",
            health: "Healthy",
            nodes: [0, 1],
            holders: [{ uid: "u", container: "main", namespace: "default", pod: "alone", why: "asks for 1" }],
          },
          { id: "evil\n\u001b[2Jid é", health: "Unhealthy", nodes: [], holders: [] },
          { id: "x".repeat(200), health: "Healthy", nodes: [1], holders: [] },
        ],
      },
      {
        resource: "vendor.com/nic",
        plugin: "awaited",
        listed: 0,
        healthy: 0,
        given: 0,
        free: 0,
        notShown: 0,
        devices: [],
      },
    ],
  });
  assert.equal(
    text.slice(text.indexOf("vendor.com/gpu")),
    `vendor.com/gpu: 103 listed, 102 healthy, 1 given, 101 free
DEVICE                                                         HEALTH     NUMA NODE  POD            CONTAINER  WHY
gpu-0                                                          Healthy    0,1        default/alone  main       asks for 1
"evil\\n\\u001b[2Jid ?"                                          Unhealthy  -          -              -          -
${"x".repeat(60)}…  Healthy    1          -              -          -
and 100 more that nobody has

vendor.com/nic: 0 listed, 0 healthy, 0 given, 0 free; its plugin is awaited
`,
  );
});
