import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod } from "../../../../test/support/pods.ts";
import type { EvictionSignal, EvictionThreshold } from "../../../ground/config/index.ts";
import { type IdentifiedPod, type PodSpec, type PodUid, parseQuantity } from "../../../ground/model/index.ts";
import { evictionWords } from "./message.ts";
import { nextLookMs } from "./pace.ts";
import {
  type CandidateLife,
  type Deeds,
  type EvictionCandidate,
  type EvictionStep,
  nextStep,
  noDeeds,
  reclaimFor,
} from "./planner.ts";
import { type Look, lookAt, noPressure } from "./pressure.ts";
import { ranked } from "./ranking.ts";
import type { DiskLayout, Observation, Observations } from "./signals.ts";
import { wantedText, withContainerThresholds } from "./thresholds.ts";
import { type DiskUse, nothingHeld, type PodUse, reliefFor, useFor } from "./usage.ts";

const Mi = 2 ** 20;
const threshold = (
  signal: EvictionSignal,
  amount: string,
  more: Partial<EvictionThreshold> = {},
): EvictionThreshold => ({
  signal,
  amount: amount.endsWith("%") ? { fraction: Number(amount.slice(0, -1)) / 100 } : { quantity: parseQuantity(amount) },
  format: amount.endsWith("i") ? "binary" : "decimal",
  graceMs: 0,
  minReclaim: undefined,
  ...more,
});
const seen = (
  signal: EvictionSignal,
  available: number,
  capacity = 1000 * Mi,
): readonly [EvictionSignal, Observation] => [signal, { available, capacity }];
const observations = (...all: (readonly [EvictionSignal, Observation])[]): Observations => new Map(all);

const hard = threshold("memory.available", "100Mi");
const reclaiming = threshold("memory.available", "100Mi", { minReclaim: { quantity: parseQuantity("50Mi") } });
const soft = threshold("memory.available", "200Mi", { graceMs: 60_000 });
const settings = (...thresholds: EvictionThreshold[]) => ({ thresholds, transitionMs: 300_000 });

for (const { name, of, available, capacity, isMet } of [
  { name: "less than wanted", of: hard, available: 99 * Mi, isMet: true },
  { name: "as much as wanted", of: hard, available: 100 * Mi, isMet: false },
  {
    name: "a share of the capacity",
    of: threshold("nodefs.available", "10%"),
    available: 99,
    capacity: 1000,
    isMet: true,
  },
  { name: "just that share", of: threshold("nodefs.available", "10%"), available: 100, capacity: 1000, isMet: false },
  {
    name: "a share, cut to whole units",
    of: threshold("pid.available", "10%"),
    available: 100,
    capacity: 1009,
    isMet: false,
  },
]) {
  test(`thresholds: ${name} ${isMet ? "is too little" : "is enough"}`, () => {
    const look = lookAt(noPressure, observations(seen(of.signal, available, capacity)), settings(of), 0);
    assert.equal(look.acting.length > 0, isMet);
  });
}

test("thresholds: what can't be observed is never met", () => {
  assert.deepEqual(lookAt(noPressure, new Map(), settings(hard), 0).acting, []);
});

/** Looks at what is available at each moment, in order. */
function watch(moments: readonly (readonly [seconds: number, available: number])[], of: EvictionThreshold[]): Look {
  let record = noPressure;
  let look: Look | undefined;
  for (const [seconds, available] of moments) {
    look = lookAt(record, observations(seen("memory.available", available * Mi)), settings(...of), seconds * 1000);
    record = look.record;
  }
  assert.ok(look !== undefined);
  return look;
}

const ofMemory: readonly {
  readonly name: string;
  readonly of: EvictionThreshold[];
  readonly moments: readonly (readonly [number, number])[];
  readonly acts: boolean;
  readonly isUnderPressure: boolean;
  readonly changesAt?: number;
}[] = [
  { name: "a hard one acts at once", of: [hard], moments: [[0, 90]], acts: true, isUnderPressure: true },
  {
    name: "a soft one tells the condition and waits",
    of: [soft],
    moments: [[0, 190]],
    acts: false,
    isUnderPressure: true,
    changesAt: 60,
  },
  {
    name: "a soft one acts when its grace is over",
    of: [soft],
    moments: [
      [0, 190],
      [60, 190],
    ],
    acts: true,
    isUnderPressure: true,
  },
  {
    name: "a soft one begins anew after there was enough",
    of: [soft],
    moments: [
      [0, 190],
      [30, 210],
      [40, 190],
      [70, 190],
    ],
    acts: false,
    isUnderPressure: true,
    changesAt: 100,
  },
  {
    name: "the condition stays for the transition period",
    of: [hard],
    moments: [
      [0, 90],
      [299, 110],
    ],
    acts: false,
    isUnderPressure: true,
    changesAt: 300,
  },
  {
    name: "and goes when it is over",
    of: [hard],
    moments: [
      [0, 90],
      [300, 110],
    ],
    acts: false,
    isUnderPressure: false,
  },
  {
    name: "more has to be freed than was short",
    of: [reclaiming],
    moments: [
      [0, 90],
      [10, 149],
    ],
    acts: true,
    isUnderPressure: true,
  },
  {
    name: "but not before anything was short",
    of: [reclaiming],
    moments: [
      [0, 149],
      [10, 149],
    ],
    acts: false,
    isUnderPressure: false,
  },
  {
    name: "and not beyond that",
    of: [reclaiming],
    moments: [
      [0, 90],
      [10, 150],
      [20, 149],
    ],
    acts: false,
    isUnderPressure: true,
    changesAt: 300,
  },
];
for (const { name, of, moments, acts, isUnderPressure, changesAt } of ofMemory) {
  test(`pressure over time: ${name}`, () => {
    const look = watch(moments, of);
    assert.equal(look.acting.length > 0, acts);
    assert.deepEqual(look.conditions, isUnderPressure ? ["MemoryPressure"] : []);
    assert.equal(look.changesAt, changesAt === undefined ? undefined : changesAt * 1000);
  });
}

test("pressure: memory comes first, and each signal has its condition", () => {
  const all = [
    threshold("nodefs.inodesFree", "5"),
    threshold("pid.available", "5"),
    threshold("allocatableMemory.available", "5"),
  ];
  const look = lookAt(noPressure, new Map(all.map(({ signal }) => seen(signal, 1))), settings(...all), 0);
  assert.deepEqual(
    look.acting.map(({ signal }) => signal),
    ["allocatableMemory.available", "nodefs.inodesFree", "pid.available"],
  );
  assert.deepEqual([...look.conditions].sort(), ["DiskPressure", "MemoryPressure", "PIDPressure"]);
});

const ownThresholds = [
  threshold("nodefs.available", "10%"),
  threshold("imagefs.available", "15%"),
  threshold("imagefs.inodesFree", "5%"),
  threshold("containerfs.available", "50%"),
];
for (const { layout, expected } of [
  { layout: "one disk for all", expected: { "containerfs.available": 0.1 } },
  { layout: "images apart", expected: { "containerfs.available": 0.15, "containerfs.inodesFree": 0.05 } },
  { layout: "containers apart", expected: { "containerfs.available": 0.1 } },
] as const) {
  test(`thresholds of what containers write, ${layout}: those of the disk it is on, whatever is set`, () => {
    const inherited = withContainerThresholds(ownThresholds, layout).filter(({ signal }) =>
      signal.startsWith("container"),
    );
    const fractions = inherited.map(({ signal, amount }) => [
      signal,
      "fraction" in amount ? amount.fraction : undefined,
    ]);
    assert.deepEqual(Object.fromEntries(fractions), expected);
  });
}

const disk: DiskUse = {
  layers: { bytes: 1, inodes: 10 },
  logs: { bytes: 2, inodes: 20 },
  ownVolumes: { bytes: 4, inodes: 40 },
  hostVolumes: { bytes: 8, inodes: 80 },
};
for (const [layout, signal, counts, frees] of [
  ["one disk for all", "nodefs.available", 15, 5],
  ["one disk for all", "imagefs.inodesFree", 150, 50],
  ["images apart", "nodefs.available", 14, 4],
  ["images apart", "imagefs.available", 1, 1],
  ["images apart", "containerfs.available", 1, 1],
  ["containers apart", "nodefs.available", 15, 5],
  ["containers apart", "containerfs.inodesFree", 150, 50],
  ["containers apart", "imagefs.available", 0, 0],
] as const) {
  test(`disk use, ${layout}: ${signal} counts ${counts}, and ${frees} go with the pod`, () => {
    assert.equal(useFor(signal, { disk }, layout), counts);
    assert.equal(reliefFor(signal, { disk }, layout), frees);
  });
}

interface RankedPod {
  readonly name: string;
  readonly priority?: number;
  readonly request?: number;
  readonly used?: number;
}
const memoryPod = ({ name, priority, request, used }: RankedPod) => ({
  pod: testPod(
    {
      ...(priority !== undefined && { priority }),
      containers: [
        testContainer("main", {
          resources: {
            requests: request === undefined ? {} : { memory: `${request}Mi`, "ephemeral-storage": `${request}` },
          },
        }),
      ],
    },
    { name },
  ),
  use:
    used === undefined
      ? undefined
      : { memoryBytes: used * Mi, tasks: used, disk: { ...noDisk, ownVolumes: { bytes: used, inodes: used } } },
});
const noDisk: DiskUse = { layers: nothingHeld, logs: nothingHeld, ownVolumes: nothingHeld, hostVolumes: nothingHeld };

for (const { name, signal, pods, order } of [
  {
    name: "unmeasured, then over its request, then priority, then how far over",
    signal: "memory.available",
    pods: [
      { name: "within", request: 100, used: 90, priority: -10 },
      { name: "far-over", request: 10, used: 90 },
      { name: "over-important", request: 10, used: 900, priority: 1000 },
      { name: "a-bit-over", request: 80, used: 90 },
      { name: "unmeasured", priority: 5000 },
      { name: "within-important", request: 100, used: 10, priority: 1 },
    ],
    order: "unmeasured far-over a-bit-over over-important within within-important",
  },
  {
    name: "the class of a pod is no key: one with a request and over it goes before one without that uses less",
    signal: "allocatableMemory.available",
    pods: [
      { name: "besteffort", used: 5 },
      { name: "burstable", request: 10, used: 50 },
    ],
    order: "burstable besteffort",
  },
  {
    name: "processes: priority first, whoever is over what",
    signal: "pid.available",
    pods: [
      { name: "many-important", used: 900, priority: 10 },
      { name: "few", used: 10 },
      { name: "many", used: 20 },
      { name: "unmeasured" },
    ],
    order: "unmeasured many few many-important",
  },
  {
    name: "bytes on disk as memory",
    signal: "nodefs.available",
    pods: [
      { name: "within", request: 100, used: 90 },
      { name: "over", request: 10, used: 20 },
    ],
    order: "over within",
  },
  {
    name: "files: whoever has any is over; the bytes asked for are subtracted from the count",
    signal: "nodefs.inodesFree",
    pods: [
      { name: "none", used: 0 },
      { name: "asked-for-bytes", request: 1000, used: 500 },
      { name: "asked-for-none", used: 100 },
    ],
    order: "asked-for-none asked-for-bytes none",
  },
  {
    name: "equals stay in order",
    signal: "memory.available",
    pods: [
      { name: "b", used: 1 },
      { name: "a", used: 1 },
    ],
    order: "b a",
  },
] satisfies readonly { name: string; signal: EvictionSignal; pods: readonly RankedPod[]; order: string }[]) {
  test(`ranking: ${name}`, () => {
    const found = ranked(pods.map(memoryPod), signal, "one disk for all").map(({ item }) => item.pod.metadata.name);
    assert.equal(found.join(" "), order);
  });
}

for (const [signal, layout, expected] of [
  ["memory.available", "one disk for all", ""],
  ["pid.available", "images apart", ""],
  ["nodefs.available", "one disk for all", "containers images"],
  ["imagefs.inodesFree", "one disk for all", "containers images"],
  ["nodefs.available", "images apart", ""],
  ["imagefs.available", "images apart", "containers images"],
  ["containerfs.available", "images apart", "containers images"],
  ["nodefs.inodesFree", "containers apart", "containers"],
  ["imagefs.available", "containers apart", "images"],
  ["containerfs.available", "containers apart", "containers"],
] satisfies readonly (readonly [EvictionSignal, DiskLayout, string])[]) {
  test(`before pods, ${layout}: ${signal} frees ${expected || "nothing"}`, () => {
    assert.equal(reclaimFor({ signal }, layout).join(" "), expected);
  });
}

interface PlannedPod extends RankedPod {
  readonly life?: CandidateLife;
  readonly exemption?: string;
  readonly spec?: Partial<PodSpec>;
}
const candidate = ({ life = { step: "running" }, exemption, spec, ...rest }: PlannedPod): EvictionCandidate => {
  const { pod, use } = memoryPod(rest);
  const metadata = { ...pod.metadata, uid: rest.name };
  return { pod: { ...pod, metadata, spec: { ...pod.spec, ...spec } }, use, life, exemption };
};
const stopping = (killAt: number | undefined, isAtOnce = false): CandidateLife => ({
  step: "stopping",
  killAt,
  isAtOnce,
});
const chosen = (name: string, at: number, grace: number | "at once" = 1): Partial<Deeds> => ({
  victims: new Map([[name as PodUid, { at, grace }]]),
  lastVictimAt: at,
});

const now = 1_000_000;
function plan(request: {
  readonly of?: EvictionThreshold;
  readonly available?: number;
  /** A second ago. */
  readonly before?: number;
  readonly pods: readonly PlannedPod[];
  readonly deeds?: Partial<Deeds>;
  readonly layout?: DiskLayout;
  readonly maxPodGraceSeconds?: number;
}): EvictionStep {
  const { of = hard, available = 90, pods, deeds = {}, layout = "one disk for all", maxPodGraceSeconds = 0 } = request;
  const then = request.before ?? available;
  let record = noPressure;
  if (of.graceMs > 0) {
    record = lookAt(record, observations(seen(of.signal, available * Mi)), settings(of), now - of.graceMs).record;
  }
  record = lookAt(record, observations(seen(of.signal, then * Mi)), settings(of), now - 1000).record;
  const present = observations(seen(of.signal, available * Mi));
  return nextStep({
    now,
    look: lookAt(record, present, settings(of), now),
    observations: present,
    layout,
    deeds: { ...noDeeds, ...deeds },
    candidates: pods.map(candidate),
    maxPodGraceSeconds,
  });
}
const shown = (step: EvictionStep): string => {
  switch (step.type) {
    case "evict":
      return `evict ${step.victim.pod.metadata.name} ${step.grace}`;
    case "hasten":
      return `hasten ${step.pods.map((pod) => pod.metadata.name).join(" ")} ${step.grace}`;
    case "reclaim":
      return `reclaim ${step.means.join(" ")}`;
    default:
      return step.type;
  }
};
const nodefs = threshold("nodefs.available", "100Mi");

for (const { name, request, expected } of [
  { name: "enough", request: { available: 100, pods: [{ name: "a", used: 50 }] }, expected: "rest" },
  {
    name: "the first in rank goes, with a second to end",
    request: {
      pods: [
        { name: "a", used: 50 },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b 1",
  },
  {
    name: "who must stay is passed over",
    request: {
      pods: [
        { name: "a", used: 50 },
        { name: "b", used: 60, exemption: "critical" },
      ],
    },
    expected: "evict a 1",
  },
  {
    name: "only who must stay",
    request: { pods: [{ name: "b", used: 60, exemption: "critical" }] },
    expected: "stuck",
  },
  { name: "nobody at all", request: { pods: [] }, expected: "stuck" },
  {
    name: "at a rate that leaves no time to ask, nobody is asked",
    request: { available: 90, before: 180, pods: [{ name: "a", used: 500 }] },
    expected: "evict a at once",
  },
  {
    name: "slow growth leaves time",
    request: { available: 90, before: 100, pods: [{ name: "a", used: 500 }] },
    expected: "evict a 1",
  },
  {
    name: "with hardly anything left, nobody is asked",
    request: { available: 20, pods: [{ name: "a", used: 9 }] },
    expected: "evict a at once",
  },
  {
    name: "soft: the pod's own grace, as far as the node allows",
    request: { of: soft, available: 190, maxPodGraceSeconds: 10, pods: [{ name: "a", used: 5 }] },
    expected: "evict a 10",
  },
  {
    name: "soft: never more than the pod's own",
    request: {
      of: soft,
      available: 190,
      maxPodGraceSeconds: 100,
      pods: [{ name: "a", used: 5, spec: { terminationGracePeriodSeconds: 7 } }],
    },
    expected: "evict a 7",
  },
  {
    name: "soft: a negative maximum is the pod's own",
    request: { of: soft, available: 190, maxPodGraceSeconds: -1, pods: [{ name: "a", used: 5 }] },
    expected: "evict a 30",
  },
  {
    name: "a victim that frees enough is waited for",
    request: {
      pods: [
        { name: "a", used: 50, life: stopping(now + 900) },
        { name: "b", used: 60 },
      ],
      deeds: chosen("a", now - 100),
    },
    expected: "wait",
  },
  {
    name: "one that frees too little is waited for as well while there is time",
    request: {
      pods: [
        { name: "a", used: 1, life: stopping(now + 900) },
        { name: "b", used: 60 },
      ],
      deeds: chosen("a", now - 100),
    },
    expected: "wait",
  },
  {
    name: "but not when there is none",
    request: {
      available: 90,
      before: 190,
      pods: [
        { name: "a", used: 1, life: stopping(now, true) },
        { name: "b", used: 60 },
      ],
      deeds: chosen("a", now - 100, "at once"),
    },
    expected: "evict b at once",
  },
  {
    name: "a victim that does not die holds up nobody",
    request: {
      pods: [
        { name: "a", used: 50, life: stopping(now - 5_000) },
        { name: "b", used: 60 },
      ],
      deeds: chosen("a", now - 6_000),
    },
    expected: "evict b 1",
  },
  {
    name: "a victim with a long grace gets a short one when it gets worse",
    request: { pods: [{ name: "a", used: 50, life: stopping(now + 20_000) }], deeds: chosen("a", now - 9_000, 30) },
    expected: "hasten a 1",
  },
  {
    name: "and none when there is no time",
    request: {
      available: 90,
      before: 190,
      pods: [{ name: "a", used: 50, life: stopping(now + 900) }],
      deeds: chosen("a", now - 100),
    },
    expected: "hasten a at once",
  },
  {
    name: "a pod that ends anyway and frees enough is hastened, and nobody else goes",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(now + 25_000) },
        { name: "b", used: 60 },
      ],
    },
    expected: "hasten deleted 1",
  },
  {
    name: "unless it must not be touched: then it is waited for",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(now + 25_000), exemption: "critical" },
        { name: "b", used: 60 },
      ],
    },
    expected: "wait",
  },
  {
    name: "one that frees nothing that matters is left in peace",
    request: {
      pods: [
        { name: "deleted", used: 1, life: stopping(now + 25_000) },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b 1",
  },
  {
    name: "soft thresholds hasten nobody",
    request: { of: soft, available: 190, pods: [{ name: "deleted", used: 50, life: stopping(now + 25_000) }] },
    expected: "wait",
  },
  {
    name: "a pod that is to end but has not begun to is hastened, so that it is known since when it is waited for",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined) },
        { name: "b", used: 60 },
      ],
    },
    expected: "hasten deleted 1",
  },
  {
    name: "and then waited for",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined) },
        { name: "b", used: 60 },
      ],
      deeds: { victims: new Map([["deleted" as PodUid, { at: now - 5_999, grace: 1 }]]) },
    },
    expected: "wait",
  },
  {
    name: "but not for ever: whatever holds it holds up nobody",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined) },
        { name: "b", used: 60 },
      ],
      deeds: { victims: new Map([["deleted" as PodUid, { at: now - 6_000, grace: 1 }]]) },
    },
    expected: "evict b 1",
  },
  {
    name: "one that must not be touched and has not begun to end is not counted on",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined), exemption: "critical" },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b 1",
  },
  {
    name: "soft: one that has not begun to end is not counted on",
    request: {
      of: soft,
      available: 190,
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined) },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b 0",
  },
  {
    name: "the next victim comes a second after the last at the earliest",
    request: { pods: [{ name: "b", used: 60 }], deeds: { lastVictimAt: now - 999 } },
    expected: "wait",
  },
  {
    name: "and then it comes",
    request: { pods: [{ name: "b", used: 60 }], deeds: { lastVictimAt: now - 1_000 } },
    expected: "evict b 1",
  },
  {
    name: "disk: first what nobody would miss",
    request: { of: nodefs, pods: [{ name: "a", used: 50 }] },
    expected: "reclaim containers images",
  },
  {
    name: "disk: while that is under way, nobody goes",
    request: { of: nodefs, pods: [{ name: "a", used: 50 }], deeds: { reclaimingSince: now - 29_999 } },
    expected: "wait",
  },
  {
    name: "disk: unless it takes too long",
    request: { of: nodefs, pods: [{ name: "a", used: 50 }], deeds: { reclaimingSince: now - 30_000 } },
    expected: "evict a 1",
  },
  {
    name: "disk: when it did not help, pods go",
    request: { of: nodefs, pods: [{ name: "a", used: 50 }], deeds: { lastReclaimAt: now - 10 } },
    expected: "evict a 1",
  },
  {
    name: "disk: what a victim leaves behind is removed before the next goes",
    request: {
      of: nodefs,
      pods: [{ name: "b", used: 50 }],
      deeds: { lastReclaimAt: now - 9_000, lastVictimAt: now - 3_000 },
    },
    expected: "reclaim containers images",
  },
  {
    name: "disk: what it left takes a while to go",
    request: {
      of: nodefs,
      pods: [{ name: "b", used: 50 }],
      deeds: { lastReclaimAt: now - 9_000, lastDiskVictimAt: now - 14_999 },
    },
    expected: "wait",
  },
  {
    name: "disk: but not for ever",
    request: {
      of: nodefs,
      pods: [{ name: "b", used: 50 }],
      deeds: { lastReclaimAt: now - 9_000, lastDiskVictimAt: now - 15_000 },
    },
    expected: "evict b 1",
  },
  {
    name: "disk: a victim's volumes are waited for",
    request: {
      of: nodefs,
      pods: [
        { name: "a", used: 50, life: { step: "stopped" } },
        { name: "b", used: 60 },
      ],
      deeds: { ...chosen("a", now - 20_000), lastReclaimAt: now - 1_000 },
    },
    expected: "wait",
  },
  {
    name: "disk, images apart: the node's own disk has nothing to be removed first",
    request: { of: nodefs, layout: "images apart", pods: [{ name: "a", used: 50 }] },
    expected: "evict a 1",
  },
] satisfies readonly { name: string; request: Parameters<typeof plan>[0]; expected: string }[]) {
  test(`planner: ${name}`, () => assert.equal(shown(plan(request)), expected));
}

const spent = (use: PodUse | undefined, pod: IdentifiedPod, of: EvictionThreshold, available: number) =>
  evictionWords(
    pod,
    use,
    of.signal === "pid.available" ? "pids" : of.signal.startsWith("memory") ? "memory" : "ephemeral-storage",
    {
      acting: [of],
      observations: observations(seen(of.signal, available)),
    },
  );

test("words: who used more than asked for is named, in status and annotations", () => {
  const pod = testPod({
    containers: [
      testContainer("a", { resources: { requests: { memory: "10Mi" } } }),
      testContainer("b", { resources: { requests: { memory: "100Mi" } } }),
      testContainer("c"),
    ],
  });
  const containers = [
    { name: "a", memoryBytes: 20 * Mi },
    { name: "b", memoryBytes: 20 * Mi },
    { name: "c", memoryBytes: 4096 },
  ];
  assert.deepEqual(spent({ memoryBytes: 1, containers }, pod, hard, 96 * 1024), {
    message:
      "The node was low on resource: memory. Threshold quantity: 100Mi, available: 96Ki. " +
      "Container a was using 20Mi, request is 10Mi, has larger consumption of memory. " +
      "Container c was using 4Ki, request is 0, has larger consumption of memory. ",
    annotations: {
      offending_containers: "a,c",
      offending_containers_usage: "20Mi,4Ki",
      starved_resource: "memory",
    },
  });
});

test("words: a pod that asks as a whole is named as a whole", () => {
  const pod = testPod(
    { containers: [testContainer("a")], resources: { requests: { memory: "64Mi" } } },
    { name: "whole" },
  );
  const { message, annotations } = spent({ memoryBytes: 80 * Mi, containers: [] }, pod, hard, 5);
  assert.match(message, /Pod whole was using 80Mi, request is 64Mi, has larger consumption of memory\. $/);
  assert.deepEqual([annotations["offending_pod"], annotations["offending_pod_usage"]], ["whole", "80Mi"]);
});

test("words: a share is shown as an amount, and files and processes name no container", () => {
  assert.equal(wantedText(threshold("nodefs.available", "10%"), { available: 1, capacity: 1000 * Mi }), "100Mi");
  const pids = threshold("pid.available", "1k");
  const { message } = spent({ tasks: 5, containers: [{ name: "main", memoryBytes: 5 }] }, testPod(), pids, 12);
  assert.equal(message, "The node was low on resource: pids. Threshold quantity: 1k, available: 12. ");
});

test("words: of a pod that was not measured, only the node is told of", () => {
  const { message, annotations } = spent(undefined, testPod(), nodefs, Mi);
  assert.equal(message, "The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: 1Mi. ");
  assert.deepEqual(annotations, {});
});

const rest: EvictionStep = { type: "rest" };
for (const { name, available, step = rest, changesAt, expected } of [
  { name: "far away, rarely", available: 40_000, expected: 10_000 },
  { name: "as soon as it could be reached", available: 100 + 2048, expected: 2_000 },
  { name: "close, often", available: 101, expected: 250 },
  { name: "a soft threshold in its grace, now and then", available: 50, expected: 1_000 },
  { name: "when time alone changes something, then", available: 20_000, changesAt: 1234, expected: 1234 },
  {
    name: "while somebody goes, all the time",
    available: 50,
    step: { type: "wait", threshold: hard } as EvictionStep,
    expected: 100,
  },
  {
    name: "when nothing helps, not in vain",
    available: 50,
    step: { type: "stuck", threshold: hard } as EvictionStep,
    expected: 2_000,
  },
]) {
  test(`pace: ${name}`, () => {
    const look: Look = { record: noPressure, acting: [], conditions: [], changesAt };
    const seenNow = observations(seen("memory.available", available * Mi));
    assert.equal(nextLookMs(look, step, { thresholds: [hard], observations: seenNow }, 0), expected);
  });
}
