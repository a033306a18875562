import {
  type EvictionAmount,
  type EvictionSignal,
  type EvictionThreshold,
  parseEvictionThreshold,
} from "../../src/ground/config/index.ts";
import { parseQuantity } from "../../src/ground/model/index.ts";
import type { Observation, Observations } from "../../src/node/eviction/plan/signals.ts";
import { type DiskUse, nothingHeld } from "../../src/node/eviction/plan/usage.ts";
import { testContainer, testPod } from "./pods.ts";

export const Mi = 2 ** 20;
function amountOf(text: string): EvictionAmount {
  const amount = parseEvictionThreshold(text);
  if (amount === "off") throw new Error(`${text} is no threshold`);
  return amount;
}
export const threshold = (
  signal: EvictionSignal,
  amount: string,
  more: Partial<EvictionThreshold> = {},
): EvictionThreshold => ({
  signal,
  amount: amountOf(amount),
  format: amount.endsWith("i") ? "binary" : "decimal",
  graceMs: 0,
  minReclaim: undefined,
  ...more,
});
export const seen = (
  signal: EvictionSignal,
  available: number,
  capacity = 1000 * Mi,
): readonly [EvictionSignal, Observation] => [signal, { available, capacity }];
export const observations = (...all: (readonly [EvictionSignal, Observation])[]): Observations => new Map(all);

export const hard = threshold("memory.available", "100Mi");
export const reclaiming = threshold("memory.available", "100Mi", { minReclaim: { quantity: parseQuantity("50Mi") } });
export const soft = threshold("memory.available", "200Mi", { graceMs: 60_000 });
export const settings = (...thresholds: EvictionThreshold[]) => ({ thresholds, transitionMs: 300_000 });

export interface RankedPod {
  readonly name: string;
  readonly priority?: number;
  readonly request?: number;
  readonly used?: number;
}
export const memoryPod = ({ name, priority, request, used }: RankedPod) => ({
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
export const noDisk: DiskUse = {
  layers: nothingHeld,
  logs: nothingHeld,
  ownVolumes: nothingHeld,
  hostVolumes: nothingHeld,
};

export const nodefs = threshold("nodefs.available", "100Mi");
