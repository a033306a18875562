import { table } from "../base/index.ts";
/**
 * Kubernetes quantities ("100m", "1.5Gi", "2e3") as exact numbers: a bigint counted in billionths, the finest
 * resolution the API allows. Finer input is rounded up, as the API server does.
 */
export type Nano = bigint;

const nanosPerUnit = 1_000_000_000n;

const suffixes: Readonly<Record<string, readonly [bigint, bigint]>> = table({
  n: [1n, 1_000_000_000n],
  u: [1n, 1_000_000n],
  m: [1n, 1_000n],
  "": [1n, 1n],
  k: [10n ** 3n, 1n],
  M: [10n ** 6n, 1n],
  G: [10n ** 9n, 1n],
  T: [10n ** 12n, 1n],
  P: [10n ** 15n, 1n],
  E: [10n ** 18n, 1n],
  Ki: [2n ** 10n, 1n],
  Mi: [2n ** 20n, 1n],
  Gi: [2n ** 30n, 1n],
  Ti: [2n ** 40n, 1n],
  Pi: [2n ** 50n, 1n],
  Ei: [2n ** 60n, 1n],
});

/**
 * No quantity that the API server writes has more than some thirty characters, and nothing has a use for more digits than
 * this; computing with hundreds of thousands of them would hold up the event loop.
 */
const longestQuantity = 256;

// Each digit can belong to one part only, so that nothing is tried twice.
const pattern = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)$/;

/** The same few texts are read at every look at a pod or the node. Whoever fills this only makes us compute again. */
const known = new Map<string, Nano | undefined>();
const mostKnown = 1_000;
const longestKnown = 32;

/** The quantity in billionths, or undefined when the text is not a quantity. */
export function tryParseQuantity(text: string): Nano | undefined {
  if (text.length > longestKnown) return text.length > longestQuantity ? undefined : computed(text);
  const value = known.get(text);
  if (value !== undefined || known.has(text)) return value;
  if (known.size >= mostKnown) known.clear();
  const found = computed(text);
  known.set(text, found);
  return found;
}

function computed(text: string): Nano | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, sign, digits = "", exponentText, suffix = ""] = match;
  const [whole = "", fraction = ""] = digits.split(".");
  let numerator = BigInt(`${whole}${fraction}` || "0") * nanosPerUnit;
  let denominator = 10n ** BigInt(fraction.length);
  if (exponentText !== undefined) {
    const exponent = Number(exponentText.slice(1));
    if (exponent >= 0) numerator *= 10n ** BigInt(exponent);
    else denominator *= 10n ** BigInt(-exponent);
  } else {
    const scale = suffixes[suffix];
    if (scale === undefined) return undefined;
    numerator *= scale[0];
    denominator *= scale[1];
  }
  const magnitude = divideUp(numerator, denominator);
  return sign === "-" ? -magnitude : magnitude;
}

export function parseQuantity(text: string): Nano {
  const value = tryParseQuantity(text);
  if (value === undefined) throw new QuantityError(text);
  return value;
}

class QuantityError extends Error {
  override readonly name = "QuantityError";
  readonly text: string;
  constructor(text: string) {
    const shown = text.length > longestQuantity ? `${text.slice(0, longestQuantity)}…` : text;
    super(
      `${JSON.stringify(shown)} is not a quantity; wanted a number with an optional suffix such as 100m, 1.5Gi or 2e3`,
    );
    this.text = shown;
  }
}

/** Whole units, rounded up (bytes, counts). */
export function wholeUnits(quantity: Nano): bigint {
  return quantity >= 0n ? divideUp(quantity, nanosPerUnit) : quantity / nanosPerUnit;
}

/** Thousandths, rounded up (millicores). */
export function milliUnits(quantity: Nano): bigint {
  const perMilli = nanosPerUnit / 1000n;
  return quantity >= 0n ? divideUp(quantity, perMilli) : quantity / perMilli;
}

function divideUp(numerator: bigint, denominator: bigint): bigint {
  return (numerator + denominator - 1n) / denominator;
}
