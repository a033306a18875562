import type { EvictionAmount, EvictionSignal, EvictionThreshold } from "../../../ground/config/index.ts";
import { amountText, type DiskLayout, type Observation } from "./signals.ts";

const nanosPerUnit = 1_000_000_000n;

/** Hard thresholds are acted on at once. */
export function isHard({ graceMs }: EvictionThreshold): boolean {
  return graceMs === 0;
}

/** How much has to be there. */
export function wantedAmount({ amount }: Pick<EvictionThreshold, "amount">, { capacity }: Observation): number {
  return unitsOf(amount, capacity);
}

/** How much has to be there once something had to be freed. */
export function amountToReach(threshold: EvictionThreshold, observed: Observation): number {
  const { minReclaim } = threshold;
  const more = minReclaim === undefined ? 0 : unitsOf(minReclaim, observed.capacity);
  return wantedAmount(threshold, observed) + more;
}

/** As the messages of evictions show it: shares as the kubelet does, those of files and processes too. */
export function wantedText(threshold: EvictionThreshold, observed: Observation): string {
  const { amount, format } = threshold;
  return amountText(wantedAmount(threshold, observed), "quantity" in amount ? format : "binary");
}

function unitsOf(amount: EvictionAmount, capacity: number): number {
  if ("fraction" in amount) return Math.trunc(capacity * amount.fraction);
  // Never rounded: what a person sets in thousandths of a byte is compared as such.
  return Number(amount.quantity) / Number(nanosPerUnit);
}

const containerSignals: Readonly<Partial<Record<EvictionSignal, EvictionSignal>>> = {
  "nodefs.available": "containerfs.available",
  "nodefs.inodesFree": "containerfs.inodesFree",
  "imagefs.available": "containerfs.available",
  "imagefs.inodesFree": "containerfs.inodesFree",
};

/** What containers write has no thresholds of its own: those of the disk that it is on hold, whatever is set. */
export function withContainerThresholds(
  thresholds: readonly EvictionThreshold[],
  layout: DiskLayout,
): readonly EvictionThreshold[] {
  const disk = layout === "images apart" ? "imagefs." : "nodefs.";
  const own = thresholds.filter(({ signal }) => !signal.startsWith("containerfs."));
  const inherited = own.flatMap((threshold) => {
    const signal = containerSignals[threshold.signal];
    return signal !== undefined && threshold.signal.startsWith(disk) ? [{ ...threshold, signal }] : [];
  });
  return [...own, ...inherited];
}
