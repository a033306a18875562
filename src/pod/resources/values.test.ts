import assert from "node:assert/strict";
import { test } from "node:test";
import { amountsOf, type Container, type IdentifiedPod, type ResourceRequirements } from "../../ground/model/index.ts";
import { kubepodsValues, memoryForPods, reservedValues } from "./allocatable-values.ts";
import { heldMemory } from "./cgroup-reads.ts";
import type { CgroupValues } from "./cgroup-values.ts";
import { type PodValueSettings, podValues } from "./pod-cgroup-limits.ts";
import { tierValues } from "./qos-cgroup-limits.ts";

const settings: PodValueSettings = {
  cpuCfsQuota: true,
  cpuPeriodUs: 100_000,
  podPidsLimit: -1,
  memoryQos: false,
  hugePageSizes: [],
};

const gibibyte = 1n << 30n;
const full = { cpu: "1", memory: "1Gi" };
const one = (resources: ResourceRequirements, name = "c"): Container => ({ name, resources });

function pod(spec: Partial<IdentifiedPod["spec"]>): IdentifiedPod {
  return { metadata: { name: "p", namespace: "n", uid: "u" }, spec: { containers: [], ...spec } };
}

const rows: readonly (readonly [string, Partial<IdentifiedPod["spec"]>, CgroupValues])[] = [
  ["best effort", { containers: [one({})] }, { cpuShares: 2 }],
  [
    "guaranteed",
    { containers: [one({ requests: full, limits: full })] },
    { cpuShares: 1024, cpuQuota: { quotaUs: 100_000, periodUs: 100_000 }, memoryLimitBytes: gibibyte },
  ],
  ["burstable by request", { containers: [one({ requests: full })] }, { cpuShares: 1024 }],
  [
    "burstable, every container limited",
    { containers: [one({ requests: { cpu: "100m" }, limits: full }), one({ limits: { cpu: "500m", memory: "1Gi" } })] },
    { cpuShares: 102, cpuQuota: { quotaUs: 150_000, periodUs: 100_000 }, memoryLimitBytes: 2n * gibibyte },
  ],
  [
    "burstable, one container without a cpu limit",
    { containers: [one({ limits: full }), one({ limits: { memory: "1Gi" } })] },
    { cpuShares: 2, memoryLimitBytes: 2n * gibibyte },
  ],
  [
    "burstable, an init container without limits",
    { containers: [one({ limits: full })], initContainers: [one({})] },
    { cpuShares: 2 },
  ],
  [
    "burstable, limited as a whole",
    { containers: [one({})], resources: { requests: { cpu: "500m" }, limits: full } },
    { cpuShares: 512, cpuQuota: { quotaUs: 100_000, periodUs: 100_000 }, memoryLimitBytes: gibibyte },
  ],
  [
    "overhead counts",
    { containers: [one({ requests: full, limits: full })], overhead: { cpu: "500m", memory: "1Gi" } },
    { cpuShares: 1536, cpuQuota: { quotaUs: 150_000, periodUs: 100_000 }, memoryLimitBytes: 2n * gibibyte },
  ],
  [
    "sidecars and init containers count by their rule",
    {
      containers: [one({ requests: { cpu: "1" } })],
      initContainers: [
        { ...one({ requests: { cpu: "500m" } }), restartPolicy: "Always" },
        one({ requests: { cpu: "2" } }),
      ],
    },
    { cpuShares: 2560 },
  ],
];

for (const [name, spec, expected] of rows) {
  test(`pod cgroup: ${name}`, () => assert.deepEqual(podValues(pod(spec), settings, false), expected));
}

const guaranteed = pod({ containers: [one({ requests: full, limits: full })] });

test("pod cgroup: CPU limits not enforced, or CPUs owned, mean an explicit lack of quota", () => {
  const unlimited = { quotaUs: -1, periodUs: 100_000 };
  assert.deepEqual(podValues(guaranteed, { ...settings, cpuCfsQuota: false }, false).cpuQuota, unlimited);
  assert.deepEqual(podValues(guaranteed, settings, true).cpuQuota, unlimited);
});

test("pod cgroup: a limit on processes above zero", () => {
  assert.equal(podValues(guaranteed, { ...settings, podPidsLimit: 100 }, false).pidsLimit, 100);
  assert.equal(podValues(guaranteed, { ...settings, podPidsLimit: 0 }, false).pidsLimit, undefined);
  const bestEffort = pod({ containers: [one({})] });
  assert.deepEqual(podValues(bestEffort, { ...settings, podPidsLimit: 7 }, false), { cpuShares: 2, pidsLimit: 7 });
});

test("more huge pages than the kernel can count to are the most it can", () => {
  const requests = { "hugepages-2Mi": "100E" };
  const spec = { containers: [{ name: "main", resources: { requests, limits: requests } }] };
  const { hugePages } = podValues(pod(spec), { ...settings, hugePageSizes: [2n << 20n] }, false);
  assert.deepEqual(hugePages, new Map([[2n << 20n, 2n ** 63n - 1n]]));
});

test("pod cgroup: huge pages by request, other sizes none", () => {
  const pages = { "hugepages-2Mi": "4Mi" };
  const spec = { containers: [one({ requests: { ...full, ...pages }, limits: { ...full, ...pages } })] };
  const { hugePages } = podValues(pod(spec), { ...settings, hugePageSizes: [2n << 20n, 1n << 30n] }, false);
  assert.deepEqual(
    hugePages,
    new Map([
      [2n << 20n, 4n << 20n],
      [1n << 30n, 0n],
    ]),
  );
});

test("pod cgroup: memory kept for the pod behind its gate", () => {
  assert.equal(podValues(guaranteed, { ...settings, memoryQos: true }, false).memoryMinBytes, gibibyte);
  const spec = { containers: [one({ requests: { cpu: "1" } })] };
  assert.equal(podValues(pod(spec), { ...settings, memoryQos: true }, false).memoryMinBytes, undefined);
});

const burstable = (cpu: string, memory: string): IdentifiedPod =>
  pod({ containers: [one({ requests: { cpu, memory } })], overhead: { cpu: "10m" } });

test("tiers: burstable weighs what its pods request, best effort nothing", () => {
  const pods = [burstable("490m", "1Gi"), burstable("490m", "1Gi"), guaranteed, pod({ containers: [one({})] })];
  assert.deepEqual(tierValues(pods, settings), {
    burstable: { cpuShares: 1024 },
    bestEffort: { cpuShares: 2 },
    kubepods: {},
  });
  assert.deepEqual(tierValues([], settings).burstable, { cpuShares: 2 });
});

test("tiers: memory kept and huge pages unlimited where the node has them", () => {
  const pods = [burstable("1", "1Gi"), guaranteed];
  const values = tierValues(pods, { memoryQos: true, hugePageSizes: [2n << 20n] });
  const hugePages = new Map([[2n << 20n, 2n ** 62n]]);
  assert.deepEqual(values.burstable, { cpuShares: 1034, memoryMinBytes: gibibyte, hugePages });
  assert.deepEqual(values.bestEffort, { cpuShares: 2, hugePages });
  assert.deepEqual(values.kubepods, { memoryMinBytes: 2n * gibibyte });
});

const node = {
  capacity: amountsOf({ cpu: "4", memory: "16Gi", pid: "32768", "hugepages-2Mi": "1Gi", "ephemeral-storage": "1Ti" }),
  systemReserved: amountsOf({ cpu: "500m", memory: "1Gi", pid: "1000" }),
  kubeReserved: amountsOf({ cpu: "500m", memory: "1Gi" }),
  hugePageSizes: [2n << 20n],
  memoryQos: false,
};
const hugePages = new Map([[2n << 20n, gibibyte]]);

test("all pods together: capacity less reserves when enforced", () => {
  assert.deepEqual(kubepodsValues(node, true), {
    cpuShares: 3072,
    memoryLimitBytes: 14n * gibibyte,
    pidsLimit: 31768,
    hugePages,
  });
});

test("all pods together: the whole capacity when not", () => {
  assert.deepEqual(kubepodsValues(node, false), {
    cpuShares: 4096,
    memoryLimitBytes: 16n * gibibyte,
    pidsLimit: 32768,
    hugePages,
  });
});

test("memory for pods: less what is reserved, enforced or not", () =>
  assert.equal(memoryForPods(node), 14n * gibibyte));

test("all pods together: a reserve larger than the machine sets no limit of zero", () => {
  const values = kubepodsValues({ ...node, systemReserved: amountsOf({ cpu: "9", memory: "64Gi" }) }, true);
  assert.deepEqual([values.cpuShares, values.memoryLimitBytes], [2, undefined]);
});

test("reserved cgroups: everything, or only what can be shared", () => {
  assert.deepEqual(reservedValues(node.systemReserved, { hugePageSizes: [], memoryQos: false }, "full"), {
    cpuShares: 512,
    memoryLimitBytes: gibibyte,
    pidsLimit: 1000,
  });
  assert.deepEqual(reservedValues(node.systemReserved, { ...node, memoryQos: true }, "compressible"), {
    cpuShares: 512,
  });
});

test("reserved cgroups: memory kept for them behind its gate", () => {
  const values = reservedValues(node.systemReserved, { hugePageSizes: [], memoryQos: true }, "full");
  assert.deepEqual([values.memoryLimitBytes, values.memoryMinBytes], [gibibyte, gibibyte]);
  assert.equal(reservedValues(amountsOf({}), { hugePageSizes: [], memoryQos: true }, "full").memoryMinBytes, undefined);
});

const requesting = (amount: string, limits: boolean): IdentifiedPod => {
  const amounts = { cpu: "100m", memory: amount };
  return pod({ containers: [one(limits ? { requests: amounts, limits: amounts } : { requests: amounts })] });
};
const mebibyte = 1n << 20n;

// [percent, allocatable, requested by Guaranteed pods, by Burstable pods, limit of burstable, limit of best effort]
for (const [percent, allocatable, ofGuaranteed, ofBurstable, burstableLimit, bestEffortLimit] of [
  [50n, 10n * gibibyte, "4Gi", "2Gi", 8n * gibibyte, 7n * gibibyte],
  [0n, 10n * gibibyte, "4Gi", "2Gi", 10n * gibibyte, 10n * gibibyte],
  [100n, 10n * gibibyte, "4Gi", "2Gi", 6n * gibibyte, 4n * gibibyte],
  [33n, 1000n * mebibyte, "100", "7", 1000n * mebibyte - 33n, 1000n * mebibyte - 35n],
  [100n, 1n * gibibyte, "2Gi", "1Gi", 0n, 0n],
  [50n, 0n, "1Gi", "1Gi", undefined, undefined],
] as const) {
  test(`tiers: ${percent} % of ${ofGuaranteed} and ${ofBurstable} kept from others, of ${allocatable}`, () => {
    const pods = [requesting(ofGuaranteed, true), requesting(ofBurstable, false), pod({ containers: [one({})] })];
    const { burstable, bestEffort, kubepods } = tierValues(pods, {
      ...settings,
      memoryReserve: { percent, allocatable },
    });
    assert.deepEqual([burstable.memoryLimitBytes, bestEffort.memoryLimitBytes], [burstableLimit, bestEffortLimit]);
    assert.equal(kubepods.memoryLimitBytes, undefined, "it has its own limit");
  });
}

for (const [version, figures, held] of [
  [2, "anon 700\nfile 400\ninactive_file 100\nactive_file 200", 700n],
  [1, "cache 1\nactive_file 9\ntotal_inactive_file 100\ntotal_active_file 200", 700n],
  [2, "", 1000n],
  [2, "active_file 5000", 0n],
] as const) {
  test(`memory that can't be given back, of cgroup v${version} with ${JSON.stringify(figures)}`, () =>
    assert.equal(heldMemory(1000n, figures, version), held));
}
