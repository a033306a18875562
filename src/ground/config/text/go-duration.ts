import { goQuote, table } from "../../base/index.ts";
import { TextError } from "./go-text.ts";

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

/** Milliseconds (with fractions down to a nanosecond) of a Go duration such as "1m30s", "-1.5h" or "0". */
export function parseDuration(text: string): number {
  const negative = text.startsWith("-");
  let rest = text.replace(/^[+-]/, "");
  if (rest === "0") return 0;
  if (rest === "") throw new TextError(`time: invalid duration ${goQuote(text)}`);
  let nanos = 0n;
  while (rest !== "") {
    const [number] = /^[0-9]*(?:\.[0-9]*)?/.exec(rest) ?? [""];
    if (number === "" || number === ".") throw new TextError(`time: invalid duration ${goQuote(text)}`);
    rest = rest.slice(number.length);
    const [unit] = /^[^0-9.]*/.exec(rest) ?? [""];
    if (unit === "") throw new TextError(`time: missing unit in duration ${goQuote(text)}`);
    const perUnit = Object.hasOwn(unitNanos, unit) ? unitNanos[unit] : undefined;
    if (perUnit === undefined) throw new TextError(`time: unknown unit ${goQuote(unit)} in duration ${goQuote(text)}`);
    rest = rest.slice(unit.length);
    const [whole = "", fraction = ""] = number.split(".");
    nanos += BigInt(whole || "0") * perUnit;
    // Digits beyond a billionth of an hour are below a nanosecond.
    const digits = fraction.slice(0, 18);
    nanos += (BigInt(digits || "0") * perUnit) / 10n ** BigInt(digits.length);
    if (nanos > longestNanos) throw new TextError(`time: invalid duration ${goQuote(text)}`);
  }
  return millisOf(negative ? -nanos : nanos);
}

/** The text Go prints for a duration: "1m0s", "100ms", "1.5s", "0s". */
export function formatDuration(ms: number): string {
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
