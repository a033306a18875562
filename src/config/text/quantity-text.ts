import { type Nano, tryParseQuantity } from "../../model/index.ts";

const nanosPerUnit = 1_000_000_000n;
const binarySuffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const decimalSuffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/** The one way Kubernetes writes a quantity: no fractions, the largest suffix of the family it was written with. */
export function canonicalQuantity(text: string): string {
  const nanos = tryParseQuantity(text);
  if (nanos === undefined || nanos === 0n) return nanos === undefined ? text : "0";
  const sign = nanos < 0n ? "-" : "";
  const magnitude = nanos < 0n ? -nanos : nanos;
  if (/[KMGTPE]i$/.test(text) && magnitude >= 1024n * nanosPerUnit && magnitude % nanosPerUnit === 0n) {
    return sign + withSuffix(magnitude / nanosPerUnit, 1024n, binarySuffixes);
  }
  return sign + withSuffix(magnitude, 1000n, decimalSuffixes);
}

function withSuffix(magnitude: Nano, step: bigint, suffixes: readonly string[]): string {
  let count = magnitude;
  let index = 0;
  while (count % step === 0n && index < suffixes.length - 1) {
    count /= step;
    index++;
  }
  return `${count}${suffixes[index] ?? ""}`;
}
