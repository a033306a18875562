export const dayMs = 86_400_000;

/** A distance in time as people say it: `in 12 days`, `3 days ago`. */
export function inDays(ms: number): string {
  const days = Math.floor(Math.abs(ms) / dayMs);
  const hours = Math.floor(Math.abs(ms) / 3_600_000);
  const years = Math.floor(days / 365);
  if (years >= 2) return ms < 0 ? `${years} years ago` : `in ${years} years`;
  const amount = days >= 2 ? `${days} days` : `${hours} ${hours === 1 ? "hour" : "hours"}`;
  return ms < 0 ? `${amount} ago` : `in ${amount}`;
}
