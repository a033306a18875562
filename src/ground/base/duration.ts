import { goQuote } from "./go-quote.ts";
import { table } from "./table.ts";

const nanosPerMs = 1_000_000;

const unitNanos: Readonly<Record<string, bigint>> = table({
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
});

const longestNanos = 2n ** 63n - 1n;

/** Reads a duration as Go writes it ("1m30s", "-1.5h", "0") into milliseconds, with fractions down to a nanosecond. */
export function readDuration(text: string): { readonly ms: number } | { readonly problem: string } {
  const negative = text.startsWith("-");
  let rest = text.replace(/^[+-]/, "");
  if (rest === "0") return { ms: 0 };
  const invalid = { problem: `time: invalid duration ${goQuote(text)}` };
  if (rest === "") return invalid;
  let nanos = 0n;
  while (rest !== "") {
    const [number] = /^[0-9]*(?:\.[0-9]*)?/.exec(rest) ?? [""];
    if (number === "" || number === ".") return invalid;
    rest = rest.slice(number.length);
    const [unit] = /^[^0-9.]*/.exec(rest) ?? [""];
    if (unit === "") return { problem: `time: missing unit in duration ${goQuote(text)}` };
    const perUnit = unitNanos[unit];
    if (perUnit === undefined) {
      return { problem: `time: unknown unit ${goQuote(unit)} in duration ${goQuote(text)}` };
    }
    rest = rest.slice(unit.length);
    const [whole = "", fraction = ""] = number.split(".");
    nanos += BigInt(whole || "0") * perUnit;
    // Digits beyond a billionth of an hour are below a nanosecond.
    const digits = fraction.slice(0, 18);
    nanos += (BigInt(digits || "0") * perUnit) / 10n ** BigInt(digits.length);
    if (nanos > longestNanos) return invalid;
  }
  return { ms: millisOf(negative ? -nanos : nanos) };
}

/** The same, where it does not matter why a text is no duration. */
export function parseDuration(text: string): number | undefined {
  const read = readDuration(text);
  return "ms" in read ? read.ms : undefined;
}

/** The text Go prints for a duration: "1m0s", "100ms", "1.5s", "0s". */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return String(ms);
  const nanos = nanosOf(Math.abs(ms));
  const sign = ms < 0 && nanos > 0n ? "-" : "";
  if (nanos === 0n) return "0s";
  for (const [unit, size, ceiling] of [
    ["ns", 1n, 1_000n],
    ["µs", 1_000n, 1_000_000n],
    ["ms", 1_000_000n, 1_000_000_000n],
  ] as const) {
    if (nanos < ceiling) return `${sign}${decimal(nanos, size)}${unit}`;
  }
  const perMinute = 60_000_000_000n;
  const minutes = nanos / perMinute;
  const seconds = `${decimal(nanos % perMinute, 1_000_000_000n)}s`;
  if (minutes === 0n) return sign + seconds;
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`;
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** Milliseconds of so many nanoseconds. */
export function millisOf(nanos: bigint): number {
  const perMs = BigInt(nanosPerMs);
  return Number(nanos / perMs) + Number(nanos % perMs) / nanosPerMs;
}

function nanosOf(ms: number): bigint {
  const whole = Math.trunc(ms);
  return BigInt(whole) * BigInt(nanosPerMs) + BigInt(Math.round((ms - whole) * nanosPerMs));
}

function decimal(nanos: bigint, size: bigint): string {
  const fraction = (nanos % size)
    .toString()
    .padStart(size.toString().length - 1, "0")
    .replace(/0+$/, "");
  return fraction === "" ? `${nanos / size}` : `${nanos / size}.${fraction}`;
}
