import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { readyRuntime, TestFacts, testNodeSettings } from "../../../../test/support/node-facts.ts";
import { strategicMergePatch } from "../../../beside/localapi/patch/strategic.ts";
import { nodeMergeKeys } from "../../../connections/kube/index.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import type { Node } from "../../../ground/model/index.ts";
import { newNode } from "../registration/node-object.ts";
import { statusChanged } from "./changed.ts";
import { StatusComputer } from "./compute.ts";
import { nodeInfoOf } from "./node-info.ts";
import { nodeStatusPatch } from "./patch.ts";

const never = new AbortController().signal;

function start(more: object = {}) {
  const facts = new TestFacts();
  const clock = new FakeClock();
  const events: string[] = [];
  const world = { facts, clock, events, storageProblem: undefined as string | undefined };
  const computer = new StatusComputer(
    { ...testNodeSettings, ...more },
    {
      facts,
      clock,
      log: silentLogger,
      recordEvent: ({ type, reason, message }) => events.push(`${type} ${reason}: ${message}`),
      storageProblem: () => world.storageProblem,
    },
  );
  return Object.assign(world, { compute: (node: Node) => computer.compute(node, never) });
}

const fresh = newNode(testNodeSettings, "amd64");

test("the whole status of a fresh node", async () => {
  const world = start();
  world.facts.volumes = ["kubernetes.io/csi/x^1"];
  const { status } = await world.compute(fresh);
  const times = { lastHeartbeatTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z" };
  const resources = { cpu: "8", memory: "16393244Ki", pods: "110", "ephemeral-storage": "97656250Ki" };
  assert.deepEqual(status, {
    addresses: [
      { type: "InternalIP", address: "10.0.0.5" },
      { type: "Hostname", address: "node-1" },
    ],
    capacity: resources,
    allocatable: resources,
    nodeInfo: {
      machineID: "machine-1",
      systemUUID: "uuid-1",
      bootID: "boot-1",
      kernelVersion: "6.1.0",
      osImage: "Debian GNU/Linux 12 (bookworm)",
      containerRuntimeVersion: "containerd://1.7.2",
      kubeletVersion: "v1.34.11",
      kubeProxyVersion: "",
      operatingSystem: "linux",
      architecture: "amd64",
    },
    daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
    images: [{ names: ["busybox:1"], sizeBytes: 5 }],
    runtimeHandlers: [{ name: "", features: { recursiveReadOnlyMounts: true, userNamespaces: false } }],
    features: { supplementalGroupsPolicy: true },
    conditions: [
      {
        type: "MemoryPressure",
        status: "False",
        ...times,
        reason: "KubeletHasSufficientMemory",
        message: "kubelet has sufficient memory available",
      },
      {
        type: "DiskPressure",
        status: "False",
        ...times,
        reason: "KubeletHasNoDiskPressure",
        message: "kubelet has no disk pressure",
      },
      {
        type: "PIDPressure",
        status: "False",
        ...times,
        reason: "KubeletHasSufficientPID",
        message: "kubelet has sufficient PID available",
      },
      { type: "Ready", status: "True", ...times, reason: "KubeletReady", message: "kubelet is posting ready status" },
    ],
    volumesInUse: ["kubernetes.io/csi/x^1"],
  });
});

test("what keeps a node from being ready, in the order it is read", async () => {
  const world = start();
  const { facts } = world;
  facts.runtimeFacts = {
    ...readyRuntime,
    problems: ["runtime trouble", "more of it"],
    networkProblem: "network trouble",
  };
  world.storageProblem = "storage trouble";
  facts.shutdown = "node is shutting down";
  facts.rootBytes = undefined;
  const { status } = await world.compute(fresh);
  assert.equal(
    status?.conditions?.at(-1)?.message,
    "[runtime trouble, more of it, network trouble, storage trouble, node is shutting down, missing node capacity for resources: ephemeral-storage]",
  );
});

test("what others wrote stays: foreign conditions in their place, attached volumes", async () => {
  const world = start();
  const network = { type: "NetworkUnavailable", status: "False" };
  const volumesAttached = [{ name: "v", devicePath: "" }];
  const old: Node = { ...fresh, status: { conditions: [network], volumesAttached } };
  const { status } = await world.compute(old);
  assert.deepEqual(
    status?.conditions?.map(({ type }) => type),
    ["NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready"],
  );
  assert.equal(status?.conditions?.[0], network);
  assert.equal(status?.volumesAttached, volumesAttached);
});

test("what the node can do beyond its version is declared, and taken back", async () => {
  const declaring = await start({ declaredFeatures: ["A", "B"] }).compute(fresh);
  assert.deepEqual((declaring.status as { declaredFeatures?: object }).declaredFeatures, ["A", "B"]);
  const silent = await start({ declaredFeatures: [] }).compute(declaring);
  assert.deepEqual((silent.status as { declaredFeatures?: object }).declaredFeatures, []);
  assert.equal("declaredFeatures" in ((await start().compute(fresh)).status ?? {}), false);
});

test("a part that cannot be read stays as it was, the others go on", async () => {
  const world = start();
  const { facts } = world;
  facts.imageList = new Error("no runtime");
  facts.defaults = {};
  const images = [{ names: ["old"], sizeBytes: 1 }];
  const addresses = [{ type: "InternalIP", address: "10.0.0.9" }];
  const { status } = await world.compute({ ...fresh, status: { images, addresses } });
  assert.equal(status?.images, images);
  assert.equal(status?.addresses, addresses);
  assert.equal(status?.capacity?.["cpu"], "8");
});

test("the node's own name is not looked up at every turn", async () => {
  const world = start();
  let lookups = 0;
  const { lookup } = world.facts.network;
  Object.assign(world.facts.network, {
    lookup: (host: string) => {
      lookups++;
      return lookup(host);
    },
  });
  for (let turn = 0; turn < 12; turn++) {
    await world.compute(fresh);
    await world.clock.advance(10_000);
  }
  assert.equal(lookups, 2);
});

test("a reboot is told once, and not of a node that is new", async () => {
  const world = start();
  const rebooted = (): readonly string[] => world.events.filter((event) => event.includes("Rebooted"));
  await world.compute(fresh);
  assert.deepEqual(rebooted(), []);
  const nodeInfo = { ...nodeInfoOf(world.facts.machine, readyRuntime, "v"), bootID: "boot-0" };
  const old = { ...fresh, status: { nodeInfo } };
  await world.compute(old);
  await world.compute(old);
  assert.deepEqual(rebooted(), ["Warning Rebooted: Node node-1 has been rebooted, boot id: boot-1"]);
});

test("cordoning is told", async () => {
  const world = start();
  const told = (): readonly string[] => world.events.filter((event) => event.includes("Schedulable"));
  const cordoned = { ...fresh, spec: { ...fresh.spec, unschedulable: true } };
  for (const node of [fresh, cordoned, cordoned, fresh]) await world.compute(node);
  assert.deepEqual(told(), [
    "Normal NodeNotSchedulable: Node node-1 status is now: NodeNotSchedulable",
    "Normal NodeSchedulable: Node node-1 status is now: NodeSchedulable",
  ]);
});

test("labels of system and architecture are repaired", async () => {
  const world = start();
  const labels = { "kubernetes.io/os": "windows", mine: "1" };
  const { metadata } = await world.compute({ ...fresh, metadata: { name: "node-1", labels } });
  assert.deepEqual(metadata?.labels, { "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", mine: "1" });
});

describe("the runtime's version", () => {
  for (const [version, expected] of [
    ["1.7.2", "containerd://1.7.2"],
    ["v1.7.2", "containerd://1.7.2"],
    ["1.7.2-rc.1+dirty", "containerd://1.7.2-rc.1+dirty"],
    ["1.6.20~ds1", "containerd://1.6.20"],
    ["1.30", "containerd://1.30"],
    ["unknown", "Unknown"],
    ["", "Unknown"],
  ] as const) {
    test(JSON.stringify(version), () => {
      const identity = { name: "containerd", version };
      const info = nodeInfoOf(new TestFacts().machine, { ...readyRuntime, identity }, "v1");
      assert.equal(info.containerRuntimeVersion, expected);
    });
  }

  test("swap is shown when there is some", () => {
    const machine = { ...new TestFacts().machine, swapBytes: 1024 };
    assert.deepEqual(nodeInfoOf(machine, readyRuntime, "v1").swap, { capacity: 1024 });
  });
});

describe("what counts as a change", () => {
  const base = {
    capacity: { memory: "1Gi" },
    conditions: [
      { type: "A", status: "True" },
      { type: "B", status: "True" },
    ],
  };
  for (const { name, next, expected } of [
    { name: "nothing", next: base, expected: false },
    {
      name: "a heartbeat",
      next: {
        ...base,
        conditions: [
          { type: "B", status: "True", lastHeartbeatTime: "x" },
          { type: "A", status: "True" },
        ],
      },
      expected: false,
    },
    {
      name: "another way to write the same amount",
      next: { ...base, capacity: { memory: "1024Mi" } },
      expected: false,
    },
    { name: "an empty list in place of none", next: { ...base, images: [], volumesInUse: [] }, expected: false },
    { name: "an amount", next: { ...base, capacity: { memory: "2Gi" } }, expected: true },
    { name: "a resource more", next: { ...base, capacity: { memory: "1Gi", cpu: "1" } }, expected: true },
    {
      name: "a condition",
      next: {
        ...base,
        conditions: [
          { type: "A", status: "False" },
          { type: "B", status: "True" },
        ],
      },
      expected: true,
    },
    {
      name: "a reason",
      next: {
        ...base,
        conditions: [
          { type: "A", status: "True", reason: "x" },
          { type: "B", status: "True" },
        ],
      },
      expected: true,
    },
    { name: "an image", next: { ...base, images: [{ names: ["a"] }] }, expected: true },
    { name: "an address", next: { ...base, addresses: [{ type: "Hostname", address: "a" }] }, expected: true },
  ]) {
    test(name, () => assert.equal(statusChanged(base, next), expected));
  }
});

describe("the patch", () => {
  test("a changed list of addresses replaces the old one", () => {
    const old: Node = {
      status: {
        addresses: [
          { type: "InternalIP", address: "1" },
          { type: "Hostname", address: "n" },
        ],
      },
    };
    const next: Node = {
      status: {
        addresses: [
          { type: "InternalIP", address: "1" },
          { type: "InternalIP", address: "2" },
          { type: "Hostname", address: "n" },
        ],
      },
    };
    const patch = nodeStatusPatch(old, next);
    assert.deepEqual(patch, { status: { addresses: [...(next.status?.addresses ?? []), { $patch: "replace" }] } });
    assert.deepEqual(strategicMergePatch(old as never, patch as never, "core.v1.Node"), next);
  });

  test("the first addresses are set as they are", () => {
    const addresses = [{ type: "Hostname", address: "n" }];
    assert.deepEqual(nodeStatusPatch({ status: {} }, { status: { addresses } }), { status: { addresses } });
  });

  test("labels travel with it, the spec does not", () => {
    const old: Node = { metadata: { labels: { a: "1" } }, spec: { podCIDR: "x" }, status: {} };
    const next: Node = { metadata: { labels: { a: "2" } }, spec: { podCIDR: "y" }, status: {} };
    assert.deepEqual(nodeStatusPatch(old, next), { metadata: { labels: { a: "2" } } });
    assert.equal(nodeMergeKeys["status.conditions"], "type");
  });
});
