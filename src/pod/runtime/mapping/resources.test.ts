import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleContainer, exampleContext, examplePod } from "../../../../test/support/example-context.ts";
import { LinuxContainerResources } from "../../../connections/cri/index.ts";
import type { Container, IdentifiedPod, ResourceRequirements } from "../../../ground/model/index.ts";
import { anywhere, type ResourceSettings } from "./context.ts";
import { containerResources, overheadResources, sandboxResources } from "./resources.ts";

const gibibyte = 1n << 30n;

function resourcesOf(
  own: ResourceRequirements,
  settings: Partial<ResourceSettings> = {},
  spec: Partial<IdentifiedPod["spec"]> = {},
): LinuxContainerResources {
  const container = exampleContainer({ resources: own });
  const pod = examplePod({ containers: [container], ...spec });
  return containerResources(pod, container, { ...exampleContext(), ...settings }, anywhere);
}

for (const [name, own, shares, quota] of [
  ["nothing", {}, 2n, 0n],
  ["a request", { requests: { cpu: "500m" } }, 512n, 0n],
  ["a limit alone counts as the request", { limits: { cpu: "2" } }, 2048n, 200_000n],
  ["request and limit", { requests: { cpu: "100m" }, limits: { cpu: "1" } }, 102n, 100_000n],
  ["a request of zero is a request", { requests: { cpu: "0" }, limits: { cpu: "1" } }, 2n, 100_000n],
  ["a tiny limit gets the smallest slice", { requests: { cpu: "1m" }, limits: { cpu: "1m" } }, 2n, 1000n],
  ["a fraction of a milli rounds up", { requests: { cpu: "100.5m" } }, 103n, 0n],
] as const) {
  test(`cpu: ${name}`, () => {
    const { cpuShares, cpuQuota, cpuPeriod } = resourcesOf(own);
    assert.deepEqual([cpuShares, cpuQuota, cpuPeriod], [shares, quota, 100_000n]);
  });
}

test("cpu: without quota enforcement neither quota nor period is sent", () => {
  const { cpuShares, cpuQuota, cpuPeriod } = resourcesOf({ limits: { cpu: "1" } }, { cpuPeriodUs: undefined });
  assert.deepEqual([cpuShares, cpuQuota, cpuPeriod], [1024n, 0n, 0n]);
});

test("cpu: another period scales the quota", () => {
  const { cpuQuota, cpuPeriod } = resourcesOf({ limits: { cpu: "1" } }, { cpuPeriodUs: 20_000 });
  assert.deepEqual([cpuQuota, cpuPeriod], [20_000n, 20_000n]);
});

test("cpu: a container with CPUs of its own has no quota, and its CPUs and memory nodes are named", () => {
  const container = exampleContainer({ resources: { limits: { cpu: "2" } } });
  const placement = { exclusiveCpus: true, cpus: "2-3", memoryNodes: "0,1" };
  const { cpuQuota, cpuPeriod, cpusetCpus, cpusetMems } = containerResources(
    examplePod({ containers: [container] }),
    container,
    exampleContext(),
    placement,
  );
  assert.deepEqual([cpuQuota, cpuPeriod, cpusetCpus, cpusetMems], [-1n, 100_000n, "2-3", "0,1"]);
});

test("pod-level limits stand in for missing container limits", () => {
  const spec = { resources: { limits: { cpu: "2", memory: "1Gi" } } };
  const bare = resourcesOf({}, {}, spec);
  assert.deepEqual([bare.cpuQuota, bare.memoryLimitInBytes, bare.cpuShares], [200_000n, gibibyte, 2048n]);
  const own = resourcesOf({ limits: { cpu: "1", memory: "64Mi" } }, {}, spec);
  assert.deepEqual([own.cpuQuota, own.memoryLimitInBytes], [100_000n, 64n << 20n]);
});

test("memory: only the limit is told", () => {
  assert.equal(resourcesOf({ requests: { memory: "1Gi" } }).memoryLimitInBytes, 0n);
  assert.equal(resourcesOf({ limits: { memory: "1Gi" } }).memoryLimitInBytes, gibibyte);
  assert.equal(resourcesOf({ limits: { memory: "1500m" } }).memoryLimitInBytes, 2n);
});

test("huge pages: every size of the kernel, zero unless asked for, the container before the pod", () => {
  const hugePageSizes = [64n << 10n, 2n << 20n, 1n << 30n];
  const limits = (own: Record<string, string>, ofPod: Record<string, string> = {}): unknown =>
    resourcesOf({ limits: own }, { hugePageSizes }, { resources: { limits: ofPod } }).hugepageLimits;
  const all = (small: bigint, middle: bigint, large: bigint): unknown => [
    { pageSize: "64KB", limit: small },
    { pageSize: "2MB", limit: middle },
    { pageSize: "1GB", limit: large },
  ];
  assert.deepEqual(limits({}), all(0n, 0n, 0n));
  assert.deepEqual(limits({ "hugepages-2Mi": "4Mi" }), all(0n, 4n << 20n, 0n));
  assert.deepEqual(limits({}, { "hugepages-1Gi": "2Gi" }), all(0n, 0n, 2n << 30n));
  assert.deepEqual(limits({ "hugepages-1Gi": "1Gi" }, { "hugepages-1Gi": "2Gi" }), all(0n, 0n, 1n << 30n));
  assert.deepEqual(limits({ "hugepages-1Mi": "1Mi" }), all(0n, 0n, 0n));
});

test("amounts beyond what CRI has room for count as the largest", () => {
  const largest = 2n ** 63n - 1n;
  const hugePageSizes = [2n << 20n];
  const amounts = { cpu: "100E", memory: "100E", "hugepages-2Mi": "100E" };
  const resources = resourcesOf({ limits: amounts }, { hugePageSizes });
  assert.deepEqual(LinuxContainerResources.decode(LinuxContainerResources.encode(resources).finish()), resources);
  assert.equal(resources.memoryLimitInBytes, largest);
  assert.deepEqual(resources.hugepageLimits, [{ pageSize: "2MB", limit: largest }]);
});

test("out of memory: on cgroup v2 the whole container dies, unless configured otherwise", () => {
  const unified = (cgroupVersion: 1 | 2, singleProcessOomKill: boolean): unknown =>
    resourcesOf({}, { cgroupVersion, singleProcessOomKill }).unified;
  assert.deepEqual(unified(2, false), { "memory.oom.group": "1" });
  assert.deepEqual(unified(2, true), {});
  assert.deepEqual(unified(1, false), {});
});

const burstable = { requests: { memory: "1Gi" }, limits: { memory: "2Gi" } };
const swapOn = { controllable: true, behavior: "LimitedSwap", capacityBytes: 4n * gibibyte } as const;
const v2 = { cgroupVersion: 2, singleProcessOomKill: true } as const;

test("swap: nothing is said when the kernel cannot control it", () => {
  const { unified, memorySwapLimitInBytes } = resourcesOf(burstable, v2);
  assert.deepEqual([unified, memorySwapLimitInBytes], [{}, 0n]);
});

test("swap: none on cgroup v1 means a limit equal to the memory limit", () => {
  const v1 = { cgroupVersion: 1, swap: swapOn } as const;
  assert.equal(resourcesOf(burstable, v1).memorySwapLimitInBytes, 2n * gibibyte);
  assert.equal(resourcesOf({}, v1).memorySwapLimitInBytes, 0n);
  assert.deepEqual(resourcesOf(burstable, v1).unified, {});
});

const same = { memory: "1Gi" };
for (const [name, own, spec, behavior, value] of [
  ["NoSwap", burstable, {}, "NoSwap", "0"],
  // 1 GiB of 16 GiB memory earns a sixteenth of 4 GiB swap.
  ["LimitedSwap", burstable, {}, "LimitedSwap", String(gibibyte / 4n)],
  ["LimitedSwap, limit without request", { limits: { memory: "2Gi" } }, {}, "LimitedSwap", "0"],
  ["LimitedSwap, request without limit", { requests: same }, {}, "LimitedSwap", String(gibibyte / 4n)],
  ["LimitedSwap, request equals limit", { requests: same, limits: same }, {}, "LimitedSwap", "0"],
  ["LimitedSwap, no memory at all", { requests: { cpu: "1" } }, {}, "LimitedSwap", "0"],
  ["LimitedSwap, best effort", {}, {}, "LimitedSwap", "0"],
  ["LimitedSwap, more than the machine has", { requests: { memory: "16385Mi" } }, {}, "LimitedSwap", "0"],
  ["LimitedSwap, all that the machine has", { requests: { memory: "16Gi" } }, {}, "LimitedSwap", String(4n * gibibyte)],
  ["LimitedSwap, a few bytes", { requests: { memory: "103" } }, {}, "LimitedSwap", "25"],
  ["LimitedSwap, critical pod", burstable, { priority: 2_000_000_000 }, "LimitedSwap", "0"],
] as const) {
  test(`swap on cgroup v2: ${name}`, () => {
    const { unified } = resourcesOf(own, { ...v2, swap: { ...swapOn, behavior } }, spec);
    assert.deepEqual(unified, { "memory.swap.max": value });
  });
}

test("swap on cgroup v2: counted as the kubelet does, in doubles", () => {
  const settings = { ...v2, swap: { ...swapOn, capacityBytes: 1_000_000_007n }, memoryCapacityBytes: 3_000_000_021n };
  const { unified } = resourcesOf({ requests: { memory: "2100000015" } }, settings);
  assert.equal(unified["memory.swap.max"], String(Math.trunc((2_100_000_015 / 3_000_000_021) * 1_000_000_007)));
});

const memoryQos = { throttlingFactor: 0.9, pageSizeBytes: 4096, podsMemoryBytes: 15n * gibibyte };

for (const [name, own, unified] of [
  ["nothing asked for", {}, {}],
  [
    "request without limit: what all pods together may use is the ceiling",
    { requests: { memory: "5Gi" } },
    { "memory.min": String(5 * 2 ** 30), "memory.high": String(14 * 2 ** 30) },
  ],
  [
    "request below limit",
    { requests: { memory: "100Mi" }, limits: { memory: "200Mi" } },
    { "memory.min": "104857600", "memory.high": "199229440" },
  ],
  [
    "the worked example of the kubelet",
    { requests: { memory: "256Mi" }, limits: { memory: "512Mi" } },
    { "memory.min": "268435456", "memory.high": "510025728" },
  ],
  ["request equals limit", { requests: same, limits: same }, { "memory.min": "1073741824" }],
  ["limit without request", { limits: { memory: "10Mi" } }, { "memory.high": "9437184" }],
  [
    "so close that no page lies between",
    { requests: { memory: "8191" }, limits: { memory: "8192" } },
    { "memory.min": "8191" },
  ],
] as const) {
  test(`memory QoS: ${name}`, () => assert.deepEqual(resourcesOf(own, { ...v2, memoryQos }).unified, unified));
}

test("memory QoS: needs cgroup v2, and without a limit what all pods may use", () => {
  assert.deepEqual(resourcesOf(burstable, { cgroupVersion: 1, memoryQos }).unified, {});
  const unknown = { ...v2, memoryQos: { ...memoryQos, podsMemoryBytes: 0n } };
  assert.deepEqual(resourcesOf({ requests: same }, unknown).unified, { "memory.min": "1073741824" });
});

test("the sandbox: sums of the pod without overhead, no score, no huge pages, no swap", () => {
  const one = (cpu: string): Container =>
    exampleContainer({ resources: { requests: { cpu }, limits: { cpu: "1", memory: "1Gi" } } });
  const pod = examplePod({ containers: [one("100m"), one("200m")], overhead: { cpu: "1", memory: "1Gi" } });
  const settings = {
    ...exampleContext(),
    ...v2,
    singleProcessOomKill: false,
    swap: swapOn,
    hugePageSizes: [2n << 20n],
  };
  assert.deepEqual(
    sandboxResources(pod, settings, false),
    LinuxContainerResources.fromPartial({
      cpuShares: 307n,
      cpuQuota: 200_000n,
      cpuPeriod: 100_000n,
      memoryLimitInBytes: 2n * gibibyte,
      unified: { "memory.oom.group": "1" },
    }),
  );
  assert.equal(sandboxResources(pod, settings, true).cpuQuota, -1n);
});

test("the sandbox: pod-level values win", () => {
  const pod = examplePod({
    containers: [exampleContainer({ resources: { requests: { cpu: "1" }, limits: { memory: "1Gi" } } })],
    resources: { requests: { cpu: "3" }, limits: { cpu: "4", memory: "5Gi" } },
  });
  const { cpuShares, cpuQuota, memoryLimitInBytes } = sandboxResources(pod, exampleContext(), false);
  assert.deepEqual([cpuShares, cpuQuota, memoryLimitInBytes], [3072n, 400_000n, 5n * gibibyte]);
});

test("overhead: request and limit alike; an empty message without any", () => {
  assert.deepEqual(overheadResources(examplePod(), exampleContext()), LinuxContainerResources.fromPartial({}));
  assert.deepEqual(
    overheadResources(examplePod({ overhead: { cpu: "250m", memory: "128Mi" } }), exampleContext()),
    LinuxContainerResources.fromPartial({
      cpuShares: 256n,
      cpuQuota: 25_000n,
      cpuPeriod: 100_000n,
      memoryLimitInBytes: 128n << 20n,
    }),
  );
});
