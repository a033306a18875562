import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container, PodSpec } from "./kube/gen/types.ts";
import { podResources, sumOfContainers } from "./pod-resources.ts";
import { computeQosClass } from "./qos.ts";
import { milliUnits, wholeUnits } from "./quantity.ts";
import { amountsOf, hugePageSizeOf, hugePageUnit, type ResourceAmounts } from "./resource-list.ts";

type List = Readonly<Record<string, string>>;

function container(requests: List, limits: List = {}): Container {
  return { name: "c", resources: { requests, limits } };
}

function sidecar(requests: List, limits: List = {}): Container {
  return { ...container(requests, limits), restartPolicy: "Always" };
}

/** Amounts as millicores and whole units, for reading in a table. */
function shown(amounts: ResourceAmounts): Record<string, number> {
  return Object.fromEntries(
    [...amounts].map(([name, amount]) => [name, Number(name === "cpu" ? milliUnits(amount) : wholeUnits(amount))]),
  );
}

for (const { name, spec, requests } of [
  { name: "nothing", spec: { containers: [container({})] }, requests: {} },
  {
    name: "regular containers add up",
    spec: { containers: [container({ cpu: "100m", memory: "1Mi" }), container({ cpu: "1" })] },
    requests: { cpu: 1100, memory: 1048576 },
  },
  {
    name: "the largest init container counts when it exceeds the sum",
    spec: {
      containers: [container({ cpu: "1" }), container({ cpu: "1" })],
      initContainers: [container({ cpu: "3" }), container({ cpu: "500m", memory: "5" })],
    },
    requests: { cpu: 3000, memory: 5 },
  },
  {
    name: "small init containers do not count",
    spec: { containers: [container({ cpu: "2" })], initContainers: [container({ cpu: "1" })] },
    requests: { cpu: 2000 },
  },
  {
    name: "sidecars add to the regular containers",
    spec: { containers: [container({ cpu: "1" })], initContainers: [sidecar({ cpu: "500m" })] },
    requests: { cpu: 1500 },
  },
  {
    name: "an init container runs beside the sidecars started before it",
    spec: {
      containers: [container({ cpu: "1" })],
      initContainers: [sidecar({ cpu: "1" }), container({ cpu: "5" }), sidecar({ cpu: "2" })],
    },
    requests: { cpu: 6000 },
  },
  {
    name: "but not beside sidecars started after it",
    spec: {
      containers: [container({ cpu: "1" })],
      initContainers: [container({ cpu: "5" }), sidecar({ cpu: "1" })],
    },
    requests: { cpu: 5000 },
  },
  {
    name: "all sidecars together can be the peak",
    spec: {
      containers: [container({ memory: "1" })],
      initContainers: [sidecar({ cpu: "1" }), sidecar({ cpu: "2" }), container({ cpu: "1" })],
    },
    requests: { cpu: 4000, memory: 1 },
  },
  {
    name: "pod-level values win over the sum, others stay",
    spec: {
      containers: [container({ cpu: "1", memory: "10", "example.com/gpu": "1" })],
      resources: { requests: { cpu: "3" } },
    },
    requests: { cpu: 3000, memory: 10, "example.com/gpu": 1 },
  },
  {
    name: "pod-level: only cpu, memory and hugepages are heeded",
    spec: {
      containers: [container({ cpu: "1", "ephemeral-storage": "7" })],
      resources: { requests: { "ephemeral-storage": "100", "hugepages-2Mi": "4Mi" } },
    },
    requests: { cpu: 1000, "ephemeral-storage": 7, "hugepages-2Mi": 4194304 },
  },
] satisfies { name: string; spec: PodSpec; requests: Record<string, number> }[]) {
  test(`requests: ${name}`, () => {
    assert.deepEqual(shown(podResources(spec, "without overhead").requests), requests);
  });
  test(`limits follow the same rule: ${name}`, () => {
    const swap = (one: Container): Container => ({ ...one, resources: { limits: one.resources?.requests } });
    const initContainers: readonly Container[] = "initContainers" in spec ? spec.initContainers : [];
    const swapped: PodSpec = {
      containers: spec.containers.map(swap),
      initContainers: initContainers.map(swap),
      ...("resources" in spec ? { resources: { limits: spec.resources.requests } } : {}),
    };
    assert.deepEqual(shown(podResources(swapped, "without overhead").limits), requests);
  });
}

test("overhead adds to every request, but only to limits that exist", () => {
  const spec: PodSpec = {
    containers: [container({ cpu: "1" }, { cpu: "2" })],
    overhead: { cpu: "250m", memory: "64" },
  };
  const { requests, limits } = podResources(spec, "with overhead");
  assert.deepEqual(shown(requests), { cpu: 1250, memory: 64 });
  assert.deepEqual(shown(limits), { cpu: 2250 });
  assert.deepEqual(shown(podResources(spec, "without overhead").requests), { cpu: 1000 });
});

test("overhead adds to pod-level values too", () => {
  const spec: PodSpec = {
    containers: [container({})],
    resources: { requests: { cpu: "1" }, limits: { memory: "10" } },
    overhead: { cpu: "1", memory: "5" },
  };
  const { requests, limits } = podResources(spec, "with overhead");
  assert.deepEqual(shown(requests), { cpu: 2000, memory: 5 });
  assert.deepEqual(shown(limits), { memory: 15 });
});

test("the sum of containers ignores pod-level values", () => {
  const spec: PodSpec = { containers: [container({ memory: "10" })], resources: { requests: { memory: "100" } } };
  assert.deepEqual(shown(sumOfContainers(spec, "requests")), { memory: 10 });
});

for (const [bytes, unit] of [
  [64n * 1024n, "64KB"],
  [2n << 20n, "2MB"],
  [1n << 30n, "1GB"],
  [512n << 20n, "512MB"],
  [100n, "100B"],
] as const) {
  test(`a page of ${bytes} bytes is ${unit}`, () => assert.equal(hugePageUnit(bytes), unit));
}

test("page sizes are read from resource names", () => {
  assert.equal(hugePageSizeOf("hugepages-2Mi"), 2n << 20n);
  assert.equal(hugePageSizeOf("hugepages-1Gi"), 1n << 30n);
  assert.equal(hugePageSizeOf("memory"), undefined);
});

test("a text in place of a list of resources names none, however long it is", () => {
  const text = "1".repeat(1_000_000) as never;
  const spec = { containers: [{ name: "main", resources: { limits: text, requests: text } }] };
  assert.equal(computeQosClass(spec), "BestEffort");
  assert.equal(amountsOf(text).size, 0);
  assert.equal(computeQosClass({ containers: text }), "BestEffort");
});
