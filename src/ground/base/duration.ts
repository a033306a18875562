import { table } from "./table.ts";

const unitMs: Readonly<Record<string, number>> = table({
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
});

/** Reads a duration as Go writes it (`1h30m`, `1.5s`, `0`) into milliseconds; undefined when it is none. */
export function parseDuration(text: string): number | undefined {
  const [, sign = "", magnitude = ""] = /^([-+]?)(.*)$/s.exec(text) ?? [];
  if (magnitude === "0") return 0;
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(magnitude)) return undefined;
  let total = 0;
  for (const [, amount = "", unit = ""] of magnitude.matchAll(/([\d.]+)([a-zµμ]+)/g)) {
    total += Number(amount) * (unitMs[unit] ?? Number.NaN);
  }
  return sign === "-" ? -total : total;
}

/** Writes milliseconds as Go prints a duration: `0s`, `250ms`, `1.5s`, `5m0s`, `1h0m0s`. Finer than 1 ns is cut. */
export function formatDuration(ms: number): string {
  const nanos = Math.trunc(Math.abs(ms) * 1e6);
  const sign = ms < 0 && nanos > 0 ? "-" : "";
  if (nanos === 0) return "0s";
  if (nanos < 1e3) return `${sign}${nanos}ns`;
  if (nanos < 1e6) return `${sign}${nanos / 1e3}µs`;
  if (nanos < 1e9) return `${sign}${nanos / 1e6}ms`;
  const wholeSeconds = Math.floor(nanos / 1e9);
  const fraction = String(nanos % 1e9)
    .padStart(9, "0")
    .replace(/0+$/, "");
  const seconds = `${wholeSeconds % 60}${fraction === "" ? "" : `.${fraction}`}s`;
  const minutes = Math.floor(wholeSeconds / 60);
  if (minutes === 0) return sign + seconds;
  if (minutes < 60) return `${sign}${minutes}m${seconds}`;
  return `${sign}${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}
