import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TestFacts, testNodeSettings } from "../../../../test/support/node-facts.ts";
import {
  allocatableOf,
  amountsOf,
  capacityOf,
  isExtended,
  missingResources,
  parseQuantity,
  type ResourceList,
} from "../../../ground/model/index.ts";

function capacity(
  change: (facts: TestFacts) => void = () => {},
  more: object = {},
  present: ResourceList = {},
): ResourceList {
  const facts = new TestFacts();
  change(facts);
  return capacityOf({ ...testNodeSettings, ...more }, { ...facts, devices: facts.devices() }, facts.rootBytes, present);
}

const plain = { cpu: "8", memory: "16393244Ki", pods: "110", "ephemeral-storage": "97656250Ki" };

describe("capacity", () => {
  for (const { name, actual, expected } of [
    { name: "a plain machine", actual: capacity(), expected: plain },
    {
      name: "pods per core below the limit",
      actual: capacity(() => {}, { podsPerCore: 10 }),
      expected: { ...plain, pods: "80" },
    },
    { name: "pods per core above the limit", actual: capacity(() => {}, { podsPerCore: 50 }), expected: plain },
    {
      name: "huge pages",
      actual: capacity((facts) => facts.hugePages.set(2n * 1024n * 1024n, 1024n * 1024n * 1024n).set(1n << 30n, 0n)),
      expected: { ...plain, "hugepages-2Mi": "1Gi", "hugepages-1Gi": "0" },
    },
    {
      name: "storage that is not isolated is not offered",
      actual: capacity(() => {}, { localStorageIsolation: false }),
      expected: { cpu: "8", memory: "16393244Ki", pods: "110" },
    },
    {
      name: "what others put there stays, huge pages that are gone do not",
      actual: capacity(() => {}, {}, { "example.com/licence": "5", "hugepages-1Gi": "2Gi", cpu: "4" }),
      expected: { ...plain, "example.com/licence": "5" },
    },
    {
      name: "devices, and those whose plugin is gone",
      actual: capacity((facts) => {
        facts.deviceFacts.capacity.set("example.com/gpu", 3);
        facts.deviceFacts.removed.push("example.com/fpga");
      }),
      expected: { ...plain, "example.com/gpu": "3", "example.com/fpga": "0" },
    },
  ]) {
    test(name, () => assert.deepEqual(actual, expected));
  }
});

describe("allocatable", () => {
  const devices = new TestFacts().devices();
  for (const { name, settings, total, present = {}, expected } of [
    { name: "all of it without reserves", settings: {}, total: plain, expected: plain },
    {
      name: "less system and kube reserves, in the same units",
      settings: { reserved: amountsOf({ cpu: "1500m", memory: "1Gi", "ephemeral-storage": "1Gi" }) },
      total: plain,
      expected: { cpu: "6500m", memory: "15344668Ki", pods: "110", "ephemeral-storage": "96607674Ki" },
    },
    {
      name: "less the hard eviction thresholds",
      settings: {
        hardEviction: { memory: { quantity: parseQuantity("100Mi") }, nodefs: { fraction: Math.fround(0.1) } },
      },
      total: plain,
      expected: { ...plain, memory: "16290844Ki", "ephemeral-storage": "89999999851" },
    },
    {
      name: "never below zero",
      settings: { reserved: amountsOf({ cpu: "100", memory: "1Ti" }) },
      total: plain,
      expected: { ...plain, cpu: "0", memory: "0" },
    },
    {
      name: "memory less the huge pages",
      settings: {},
      total: { ...plain, "hugepages-2Mi": "1Gi" },
      expected: { ...plain, memory: "15344668Ki", "hugepages-2Mi": "1Gi" },
    },
    {
      name: "a reserve of processes is no resource of the node",
      settings: { reserved: amountsOf({ pid: "1000" }) },
      total: plain,
      expected: plain,
    },
    {
      name: "extended resources that left the capacity leave here too",
      settings: {},
      total: plain,
      present: { "example.com/gpu": "1", "hugepages-2Mi": "0", cpu: "3", odd: "1" },
      expected: { ...plain, odd: "1" },
    },
  ]) {
    test(name, () => {
      assert.deepEqual(allocatableOf({ ...testNodeSettings, ...settings }, total, devices, present), expected);
    });
  }

  test("of devices the healthy ones", () => {
    const facts = { ...devices, capacity: new Map([["e.com/gpu", 3]]), allocatable: new Map([["e.com/gpu", 2]]) };
    const total = { ...plain, "e.com/gpu": "3" };
    assert.equal(allocatableOf(testNodeSettings, total, facts, {})["e.com/gpu"], "2");
  });
});

test("extended resources have a vendor's name", () => {
  const extended = ["example.com/gpu", "a/b"];
  const others = [
    "cpu",
    "hugepages-2Mi",
    "kubernetes.io/x",
    "my.kubernetes.io/x",
    "requests.a/b",
    "a/b/c",
    "A/b",
    "/b",
    "a/",
  ];
  assert.deepEqual([...extended, ...others].filter(isExtended), extended);
});

test("what is missing is named", () => {
  assert.equal(missingResources(plain, true), undefined);
  assert.equal(
    missingResources({ memory: "1" }, true),
    "missing node capacity for resources: cpu, pods, ephemeral-storage",
  );
  assert.equal(missingResources({ memory: "1", cpu: "1", pods: "1" }, false), undefined);
});
