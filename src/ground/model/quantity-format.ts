import { type Nano, tryParseQuantity } from "./quantity.ts";

const decimalSuffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const binarySuffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const nanosPerUnit = 1_000_000_000n;

/** Powers of 1024 (`Mi`) or of 1000 (`M`, `m`). */
export type QuantityFormat = "binary" | "decimal";

/** The shortest exact form with one suffix, as the API prints it: 1500m, 2Gi, 0. */
export function formatQuantity(quantity: Nano, format: QuantityFormat): string {
  if (quantity < 0n) return `-${formatQuantity(-quantity, format)}`;
  const isWhole = quantity % nanosPerUnit === 0n;
  if (format === "binary" && isWhole && quantity >= 1024n * nanosPerUnit) {
    return withSuffix(quantity / nanosPerUnit, 1024n, binarySuffixes);
  }
  return withSuffix(quantity, 1000n, decimalSuffixes);
}

function withSuffix(amount: bigint, step: bigint, suffixes: readonly string[]): string {
  if (amount === 0n) return "0";
  let mantissa = amount;
  let index = 0;
  while (mantissa % step === 0n && index < suffixes.length - 1) {
    mantissa /= step;
    index++;
  }
  return `${mantissa}${suffixes[index]}`;
}

export function formatOf(text: string): QuantityFormat {
  return text.endsWith("i") ? "binary" : "decimal";
}

/** "0.5" as "500m", "1024Mi" as "1Gi"; a text that is no quantity comes back as it is. */
export function canonicalQuantity(text: string): string {
  const quantity = tryParseQuantity(text);
  return quantity === undefined ? text : formatQuantity(quantity, formatOf(text));
}
