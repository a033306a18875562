import type { LedgerEntry } from "../../ground/base/index.ts";

/** How long a pod waited for images; pulls at the same time count once. */
export function pullMs(entries: readonly LedgerEntry[], now: number): number {
  const pulls = entries
    .filter(({ step }) => step === "pull")
    .map(({ startedAt, endedAt }) => ({ from: startedAt, to: endedAt ?? now }))
    .sort((a, b) => a.from - b.from);
  let sum = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const { from, to } of pulls) {
    if (to <= until) continue;
    sum += to - Math.max(from, until);
    until = to;
  }
  return sum;
}
