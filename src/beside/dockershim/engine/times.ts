const form = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)$/;
const nanosPerMilli = 1_000_000n;

/** Nanoseconds since 1970 of a time as Go prints it. Go's zero time and what is no time are 0: CRI's "never". */
export function nanosOf(time: string): bigint {
  const [, upToSeconds, fraction = "", zone] = form.exec(time) ?? [];
  if (upToSeconds === undefined || upToSeconds.startsWith("0001-")) return 0n;
  const millis = Date.parse(`${upToSeconds}${zone}`);
  return Number.isNaN(millis) ? 0n : BigInt(millis) * nanosPerMilli + BigInt(fraction.padEnd(9, "0"));
}
