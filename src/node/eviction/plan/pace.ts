import type { EvictionThreshold } from "../../../ground/config/index.ts";
import type { EvictionStep } from "./planner.ts";
import { type Observations, signalFacts } from "./signals.ts";
import { wantedAmount } from "./threshold-amounts.ts";
import type { Look } from "./thresholds-met.ts";

const shortestPaceMs = 250;
const longestPaceMs = 10_000;
/** While a victim goes, or a grace may have to be cut. */
export const pressedPaceMs = 100;
/** A soft threshold is met, and its grace not over: whether it still is. */
const metPaceMs = 1_000;
/** Nothing may go; somebody else may help. */
const stuckPaceMs = 2_000;

/**
 * How long nobody needs to look. Far from every threshold that is long: as long as it takes to get there if somebody took
 * as much as can be taken. What goes faster than that is told by the kernel.
 */
export function nextLookMs(
  { changesAt }: Look,
  step: EvictionStep,
  {
    thresholds,
    observations,
  }: { readonly thresholds: readonly EvictionThreshold[]; readonly observations: Observations },
  now: number,
): number {
  const untilChange = changesAt === undefined ? longestPaceMs : changesAt - now;
  return Math.max(1, Math.min(untilChange, paceOf(step, thresholds, observations)));
}

function paceOf(step: EvictionStep, thresholds: readonly EvictionThreshold[], observations: Observations): number {
  switch (step.type) {
    case "evict":
    case "hasten":
    case "reclaim":
    case "wait":
      return pressedPaceMs;
    case "stuck":
      return stuckPaceMs;
    case "rest":
      return Math.max(
        shortestPaceMs,
        Math.min(longestPaceMs, ...thresholds.map((each) => reachedInMs(each, observations))),
      );
  }
}

/** At the very least. */
function reachedInMs(threshold: EvictionThreshold, observations: Observations): number {
  const observed = observations.get(threshold.signal);
  if (observed === undefined) return longestPaceMs;
  const distance = observed.available - wantedAmount(threshold, observed);
  return distance < 0 ? metPaceMs : (distance * 1000) / signalFacts[threshold.signal].mostPerSecond;
}
