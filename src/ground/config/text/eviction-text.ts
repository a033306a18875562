import { type Nano, tryParseQuantity } from "../../model/index.ts";
import { parseDecimal, TextError } from "./go-text.ts";

export const evictionSignals = [
  "memory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "containerfs.available",
  "containerfs.inodesFree",
  "allocatableMemory.available",
  "pid.available",
] as const;

export type EvictionSignal = (typeof evictionSignals)[number];

export function isEvictionSignal(text: string): text is EvictionSignal {
  return evictionSignals.some((signal) => signal === text);
}

/** A threshold or a minimum to reclaim: an amount, or a share of the capacity (0.1 for 10%). */
export type EvictionAmount = { readonly quantity: Nano } | { readonly fraction: number };

/** The threshold that is written, "off" for 0% and 100%; throws TextError with what is wrong. */
export function parseEvictionThreshold(text: string): EvictionAmount | "off" {
  if (text === "0%" || text === "100%") return "off";
  const amount = parseEvictionAmount(text);
  if ("fraction" in amount) {
    if (amount.fraction < 0) throw new TextError("a percentage must be >= 0%");
    if (amount.fraction > 1) throw new TextError("a percentage must be <= 100%");
  } else if (amount.quantity <= 0n) throw new TextError("a quantity must be positive");
  return amount;
}

/** How much more to free; throws TextError with what is wrong. */
export function parseMinimumReclaim(text: string): EvictionAmount {
  const amount = parseEvictionAmount(text);
  if ("fraction" in amount) {
    if (amount.fraction <= 0) throw new TextError("a percentage must be positive");
  } else if (amount.quantity < 0n) throw new TextError("a quantity must not be negative");
  return amount;
}

function parseEvictionAmount(text: string): EvictionAmount {
  // The kubelet keeps percentages in 32 bits, and what comes of them is compared to the byte.
  if (text.endsWith("%")) return { fraction: Math.fround(Math.fround(parseDecimal(text.replace(/%+$/, ""))) / 100) };
  const quantity = tryParseQuantity(text);
  if (quantity === undefined)
    throw new TextError("it is neither a quantity such as 100Mi nor a percentage such as 10%");
  return { quantity };
}
