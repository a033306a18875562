import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeApi, refusal } from "../../../../test/support/fake-api.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { TestFacts, testNodeSettings } from "../../../../test/support/node-facts.ts";
import { resources } from "../../../connections/kube/index.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import type { Node } from "../../../ground/model/index.ts";
import { newNode } from "./node-object.ts";
import { reconciled } from "./reconcile.ts";
import { registerNode } from "./register.ts";

const never = new AbortController().signal;

describe("the Node that is made", () => {
  const basic = {
    "kubernetes.io/hostname": "node-1",
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "arm64",
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": "arm64",
  };
  const attach = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
  const cloudTaint = { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" };
  for (const { name, settings, expected } of [
    {
      name: "plain",
      settings: {},
      expected: { metadata: { name: "node-1", labels: basic, annotations: attach }, spec: {} },
    },
    {
      name: "labels of the operator win",
      settings: { labels: { "kubernetes.io/hostname": "other", zone: "a" } },
      expected: {
        metadata: {
          name: "node-1",
          labels: { ...basic, "kubernetes.io/hostname": "other", zone: "a" },
          annotations: attach,
        },
        spec: {},
      },
    },
    {
      name: "taints and provider id, no attach and detach",
      settings: { taints: [{ key: "a", effect: "NoExecute" }], providerId: "x://1", controllerAttachDetach: false },
      expected: {
        metadata: { name: "node-1", labels: basic },
        spec: { taints: [{ key: "a", effect: "NoExecute" }], providerID: "x://1" },
      },
    },
    {
      name: "an external cloud with two addresses",
      settings: { externalCloud: true, nodeIps: ["10.0.0.5", "fd00::5"], taints: [{ key: "a", effect: "NoSchedule" }] },
      expected: {
        metadata: {
          name: "node-1",
          labels: basic,
          annotations: { ...attach, "alpha.kubernetes.io/provided-node-ip": "10.0.0.5,fd00::5" },
        },
        spec: { taints: [{ key: "a", effect: "NoSchedule" }, cloudTaint] },
      },
    },
    {
      name: "an external cloud that is to choose the address",
      settings: { externalCloud: true, nodeIps: ["::"] },
      expected: { metadata: { name: "node-1", labels: basic, annotations: attach }, spec: { taints: [cloudTaint] } },
    },
  ]) {
    test(name, () => {
      assert.deepEqual(newNode({ ...testNodeSettings, ...settings }, "arm64"), {
        apiVersion: "v1",
        kind: "Node",
        ...expected,
      });
    });
  }
});

describe("a Node that was there before", () => {
  const devices = new TestFacts().devices();
  const wanted: Node = {
    metadata: {
      labels: {
        "kubernetes.io/hostname": "new",
        "kubernetes.io/os": "linux",
        custom: "new",
        "topology.kubernetes.io/zone": "",
      },
      annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
    },
    spec: { taints: [{ key: "t", effect: "NoSchedule" }], providerID: "x://2" },
    status: { capacity: { cpu: "8", "hugepages-2Mi": "1Gi" }, allocatable: { cpu: "7", "hugepages-2Mi": "1Gi" } },
  };
  const existing: Node = {
    metadata: {
      labels: { "kubernetes.io/hostname": "old", custom: "old", "topology.kubernetes.io/zone": "z" },
      annotations: { a: "b" },
    },
    spec: { providerID: "x://1" },
    status: {
      capacity: { cpu: "4", "hugepages-1Gi": "2Gi", "example.com/gpu": "2" },
      allocatable: { cpu: "4", "hugepages-1Gi": "2Gi", "example.com/gpu": "2" },
    },
  };

  test("gets the labels that are ours, the annotation and the huge pages; spec and other labels stay", () => {
    const next = reconciled(existing, wanted, devices);
    assert.deepEqual(next.metadata?.labels, {
      "kubernetes.io/hostname": "new",
      "kubernetes.io/os": "linux",
      custom: "old",
    });
    assert.deepEqual(next.metadata?.annotations, { a: "b", ...wanted.metadata?.annotations });
    assert.deepEqual(next.spec, existing.spec);
    assert.deepEqual(next.status?.capacity, { cpu: "4", "hugepages-2Mi": "1Gi", "example.com/gpu": "2" });
    assert.deepEqual(next.status?.allocatable, { cpu: "4", "hugepages-2Mi": "1Gi", "example.com/gpu": "2" });
  });

  test("loses the annotation when attaching is the agent's own business", () => {
    const old = { ...existing, metadata: { annotations: { ...wanted.metadata?.annotations, a: "b" } } };
    const next = reconciled(old, { ...wanted, metadata: {} }, devices);
    assert.deepEqual(next.metadata?.annotations, { a: "b" });
  });

  test("has no devices that nobody remembers", () => {
    const next = reconciled(existing, wanted, { ...devices, hasCheckpoint: false });
    assert.equal(next.status?.capacity?.["example.com/gpu"], "0");
    assert.equal(next.status?.allocatable?.["example.com/gpu"], "0");
  });

  test("gets capacity and allocatable when it has none", () => {
    const next = reconciled({ ...existing, status: {} }, wanted, devices);
    assert.deepEqual(next.status?.capacity, wanted.status?.capacity);
    assert.deepEqual(next.status?.allocatable, wanted.status?.allocatable);
  });
});

describe("registration", () => {
  const node = newNode(testNodeSettings, "amd64");
  const start = () => {
    const api = new FakeApi();
    const clock = new FakeClock();
    const devices = new TestFacts().devices;
    const ports = { client: api as never, clock, log: silentLogger, wanted: async () => node, devices };
    return { api, clock, register: () => registerNode(ports, never) };
  };

  test("makes the Node at the first try, without a wait", async () => {
    const { api, clock, register } = start();
    const made = await register();
    assert.equal(made.metadata?.uid, "uid-1");
    assert.deepEqual(api.story, ["create v1/nodes"]);
    assert.equal(clock.monotonic(), 0);
  });

  test("brings an existing Node into line through its status", async () => {
    const { api, register } = start();
    api.put(
      resources.nodes,
      { name: "node-1" },
      { metadata: { labels: { custom: "1" } }, spec: { podCIDR: "10.1.0.0/24" } },
    );
    const taken = await register();
    assert.deepEqual(api.story, ["create v1/nodes", "get nodes/node-1", "patch nodes/node-1/status"]);
    assert.equal(taken.metadata?.labels?.["kubernetes.io/hostname"], "node-1");
    assert.equal(taken.metadata?.labels?.["custom"], "1");
    assert.equal(taken.spec?.podCIDR, "10.1.0.0/24");
  });

  test("leaves one that needs nothing alone", async () => {
    const { api, register } = start();
    api.put(resources.nodes, { name: "node-1" }, node);
    api.put(
      resources.nodes,
      { name: "node-1" },
      { ...node, status: { capacity: { cpu: "1" }, allocatable: { cpu: "1" } } },
    );
    await register();
    assert.deepEqual(api.story, ["create v1/nodes", "get nodes/node-1"]);
  });

  test("who may not make Nodes looks for one", async () => {
    const { api, register } = start();
    api.put(resources.nodes, { name: "node-1" }, { metadata: {} });
    api.trouble = ({ verb }) => {
      if (verb === "create") throw refusal(403, "Forbidden", "nodes");
    };
    assert.equal((await register()).metadata?.name, "node-1");
  });

  test("is tried until it succeeds, at growing intervals up to seven seconds", async () => {
    const { api, clock, register } = start();
    const times: number[] = [];
    api.trouble = () => {
      times.push(clock.monotonic());
      if (times.length < 10) throw new Error("connect ECONNREFUSED");
    };
    const done = register();
    await clock.advance(60_000);
    await done;
    const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    assert.deepEqual(waits, [100, 200, 400, 800, 1_600, 3_200, 6_400, 7_000, 7_000]);
  });
});
