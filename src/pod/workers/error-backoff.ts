/** 1 s doubling to half a minute: quick enough for a hiccup, slow enough for a lasting fault. */
export function errorBackoffMs(failures: number): number {
  return Math.min(1_000 * 2 ** Math.max(failures - 1, 0), 30_000);
}
