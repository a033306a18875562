/** A container's log file that was set aside: `<log>.<YYYYMMDD-HHMMSS>`, later compressed to `….gz`. */
export interface RotatedLog {
  /** The whole name. */
  readonly name: string;
  readonly stamp: string;
  readonly compressed: boolean;
}

/** The rotated files of the log `base` among the names of its directory, oldest first, each once. */
export function rotatedLogs(base: string, names: Iterable<string>): readonly RotatedLog[] {
  const found = new Map<string, RotatedLog>();
  for (const name of names) {
    if (!name.startsWith(`${base}.`)) continue;
    const [, stamp, packed] = /^(\d{8}-\d{6})(\.gz)?$/.exec(name.slice(base.length + 1)) ?? [];
    if (stamp === undefined) continue;
    // While one is being compressed both are there; the plain one is complete in any case.
    if (packed === undefined || !found.has(stamp)) found.set(stamp, { name, stamp, compressed: packed !== undefined });
  }
  return [...found.values()].sort((a, b) => (a.stamp < b.stamp ? -1 : 1));
}

/**
 * The stamp of a log rotated now, in local time, but always later than the newest one there is: a clock that was set
 * back must not make it look older, nor may two of one second be the same file.
 */
export function rotationStamp(now: Date, newest: string | undefined): string {
  const stamp = format(now);
  if (newest === undefined || stamp > newest) return stamp;
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)$/.exec(newest)?.map(Number) ?? [];
  if (second === undefined) return stamp;
  return format(new Date(year ?? 0, (month ?? 1) - 1, day, hour, minute, second + 1));
}

function format(date: Date): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}${two(date.getMonth() + 1)}${two(date.getDate())}`;
  return `${day}-${two(date.getHours())}${two(date.getMinutes())}${two(date.getSeconds())}`;
}
