import assert from "node:assert/strict";
import { test } from "node:test";
import {
  hard,
  Mi,
  observations,
  reclaiming,
  seen,
  settings,
  soft,
  threshold,
} from "../../../../test/support/eviction-plan.ts";
import type { EvictionThreshold } from "../../../ground/config/index.ts";
import { type Look, lookAt, noPressure } from "./thresholds-met.ts";

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
