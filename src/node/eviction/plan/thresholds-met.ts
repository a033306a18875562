import type { EvictionSignal, EvictionThreshold } from "../../../ground/config/index.ts";
import { type Observations, type PressureCondition, signalFacts } from "./signals.ts";
import { amountToReach, wantedAmount } from "./threshold-amounts.ts";

/** What is remembered of the pressure on the node from one look to the next. All times are monotonic. */
export interface PressureRecord {
  /** Thresholds that are met, and since when. */
  readonly metSince: ReadonlyMap<EvictionThreshold, number>;
  /** Thresholds that had to be acted on at the last look: for these, more has to be freed than what they want. */
  readonly unresolved: ReadonlySet<EvictionThreshold>;
  /** When there was last a reason for each condition. */
  readonly lastReason: ReadonlyMap<PressureCondition, number>;
  readonly samples: ReadonlyMap<EvictionSignal, Sample>;
}

export interface Sample {
  readonly at: number;
  /** When the sample before it was taken: the rate is that of the time between. */
  readonly since: number;
  readonly available: number;
  /** How fast it was getting less; undefined while nobody can tell. */
  readonly lossPerSecond: number | undefined;
}

export const noPressure: PressureRecord = {
  metSince: new Map(),
  unresolved: new Set(),
  lastReason: new Map(),
  samples: new Map(),
};

export interface Look {
  readonly record: PressureRecord;
  /** What has to be acted on, memory first. */
  readonly acting: readonly EvictionThreshold[];
  readonly conditions: readonly PressureCondition[];
  /** When this changes by time alone; undefined: never. */
  readonly changesAt: number | undefined;
}

/** What one look at the node means, given what is remembered. */
export function lookAt(
  before: PressureRecord,
  observations: Observations,
  { thresholds, transitionMs }: { readonly thresholds: readonly EvictionThreshold[]; readonly transitionMs: number },
  now: number,
): Look {
  const met = thresholds.filter((threshold) => isMet(threshold, observations, before));
  const metSince = new Map(met.map((threshold) => [threshold, before.metSince.get(threshold) ?? now]));
  const acting = met
    .filter((threshold) => now - (metSince.get(threshold) ?? now) >= threshold.graceMs)
    .sort((a, b) => Number(isAboutMemory(b)) - Number(isAboutMemory(a)));
  const lastReason = new Map(before.lastReason);
  for (const { signal } of met) lastReason.set(signalFacts[signal].condition, now);
  const conditions = [...lastReason].filter(([, at]) => at === now || now - at < transitionMs).map(([type]) => type);
  for (const type of lastReason.keys()) if (!conditions.includes(type)) lastReason.delete(type);
  const changes = [
    ...met.filter((threshold) => !acting.includes(threshold)).map((each) => (metSince.get(each) ?? now) + each.graceMs),
    ...[...lastReason.values()].filter((at) => at < now).map((at) => at + transitionMs),
  ];
  return {
    record: { metSince, unresolved: new Set(acting), lastReason, samples: samplesAfter(before, observations, now) },
    acting,
    conditions,
    changesAt: changes.length === 0 ? undefined : Math.min(...changes),
  };
}

function isMet(threshold: EvictionThreshold, observations: Observations, { unresolved }: PressureRecord): boolean {
  const observed = observations.get(threshold.signal);
  if (observed === undefined) return false;
  const wanted = unresolved.has(threshold) ? amountToReach(threshold, observed) : wantedAmount(threshold, observed);
  return observed.available < wanted;
}

export function isAboutMemory({ signal }: Pick<EvictionThreshold, "signal">): boolean {
  return signalFacts[signal].resource === "memory";
}

export function isAboutDisk({ signal }: Pick<EvictionThreshold, "signal">): boolean {
  return signalFacts[signal].condition === "DiskPressure";
}

// Over less than this, a rate says more about the kernel's batches than about anybody's hunger; over more, it is history.
const shortestRateMs = 40;
const longestRateMs = 5_000;

function samplesAfter(
  { samples }: PressureRecord,
  observations: Observations,
  now: number,
): ReadonlyMap<EvictionSignal, Sample> {
  return new Map(
    [...observations].map(([signal, { available }]) => {
      const before = samples.get(signal);
      const ms = before === undefined ? Number.POSITIVE_INFINITY : now - before.at;
      if (before !== undefined && ms < shortestRateMs) return [signal, before];
      const lossPerSecond =
        before === undefined || ms > longestRateMs ? undefined : ((before.available - available) * 1000) / ms;
      return [signal, { at: now, since: before?.at ?? now, available, lossPerSecond }];
    }),
  );
}

/** In how many milliseconds nothing is left at this rate. */
export function runsOutInMs({ available, lossPerSecond }: Sample): number {
  if (lossPerSecond === undefined || lossPerSecond <= 0) return Number.POSITIVE_INFINITY;
  return (available * 1000) / lossPerSecond;
}
