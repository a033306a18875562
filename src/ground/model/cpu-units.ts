/** Conversions between millicores and the units of the kernel's CPU controller. */
export const minShares = 2;
const maxShares = 262_144;
const minQuotaUs = 1000;

export function sharesOfMilliCpu(milliCpu: number): number {
  if (milliCpu === 0) return minShares;
  return Math.min(Math.max(Math.floor((milliCpu * 1024) / 1000), minShares), maxShares);
}

/** The time slice per period in microseconds; 0 means unlimited. */
export function quotaOfMilliCpu(milliCpu: number, periodUs: number): number {
  if (milliCpu === 0) return 0;
  return Math.max(Math.floor((milliCpu * periodUs) / 1000), minQuotaUs);
}

/** The least shares that a weight may stand for: the way back loses some. */
export function sharesOfWeight(weight: number): number {
  return weight === 0 ? 0 : 2 + Math.floor(((weight - 1) * 262_142) / 9999);
}

/** The cgroup v2 weight that stands for shares. */
export function weightOfShares(shares: number): number {
  if (shares >= maxShares) return 10_000;
  return 1 + Math.floor(((Math.max(shares, minShares) - 2) * 9999) / 262_142);
}
