/** A moment with nanoseconds: whole seconds since 1970, and nanoseconds within the second. */
export interface Moment {
  readonly seconds: number;
  readonly nanos: number;
}

export function momentOf(ms: number): Moment {
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: Math.round((ms - seconds * 1000) * 1_000_000) };
}

export function isBefore(a: Moment, b: Moment): boolean {
  return a.seconds < b.seconds || (a.seconds === b.seconds && a.nanos < b.nanos);
}

const shape = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/;

/** RFC 3339 with any number of digits in the fraction; undefined for anything else. */
export function parseMoment(text: string): Moment | undefined {
  const [, whole, fraction = "", zone] = shape.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const ms = Date.parse(`${whole}${zone}`);
  if (Number.isNaN(ms)) return undefined;
  return { seconds: ms / 1000, nanos: Number(fraction.slice(0, 9).padEnd(9, "0")) };
}

/** The same time with exactly nine digits in the fraction, as `kubectl logs --timestamps` shows it. */
export function withNineDigits(text: string): string | undefined {
  const [, whole, fraction = "", zone] = shape.exec(text) ?? [];
  return whole === undefined ? undefined : `${whole}.${fraction.slice(0, 9).padEnd(9, "0")}${zone}`;
}

const wholeLength = "2006-01-02T15:04:05".length;

/**
 * Reads times from the bytes of a log without making strings of them. Consecutive lines mostly share their second, so
 * that only its fraction has to be read.
 */
export class TimeScanner {
  seconds = 0;
  nanos = 0;
  /** Where the digits of the fraction are; equal when there are none. */
  fractionStart = 0;
  fractionEnd = 0;
  readonly #known = Buffer.alloc(wholeLength);
  #knownZone = "";

  /** False: there is no time from `at` to `end`. */
  scan(input: Buffer, at: number, end: number): boolean {
    const zoneLength = input[end - 1] === 0x5a ? 1 : 6;
    this.fractionEnd = end - zoneLength;
    const hasFraction = input[at + wholeLength] === 0x2e;
    this.fractionStart = hasFraction ? at + wholeLength + 1 : at + wholeLength;
    let nanos = 0;
    let unit = 100_000_000;
    for (let index = this.fractionStart; index < this.fractionEnd; index++) {
      const digit = (input[index] ?? 0) - 0x30;
      if (digit < 0 || digit > 9 || !hasFraction) return false;
      nanos += digit * unit;
      unit = Math.trunc(unit / 10);
    }
    this.nanos = nanos;
    return this.#isKnown(input, at, end) || this.#learn(input, at, end);
  }

  #isKnown(input: Buffer, at: number, end: number): boolean {
    if (this.#knownZone === "") return false;
    for (let index = wholeLength - 1; index >= 0; index--) {
      if (input[at + index] !== this.#known[index]) return false;
    }
    for (let index = this.#knownZone.length; index > 0; index--) {
      if (input[end - index] !== this.#knownZone.charCodeAt(this.#knownZone.length - index)) return false;
    }
    return true;
  }

  #learn(input: Buffer, at: number, end: number): boolean {
    const moment = parseMoment(input.toString("latin1", at, end));
    if (moment === undefined) return false;
    input.copy(this.#known, 0, at, at + wholeLength);
    this.#knownZone = input.toString("latin1", this.fractionEnd, end);
    this.seconds = moment.seconds;
    return true;
  }
}
