import type { Figure } from "../wire.ts";

/** Samples come every two seconds; where none came for so long, nobody has looked. */
const pauseMs = 10_000;

export interface Timed {
  readonly times: readonly Figure[];
  readonly columns: readonly (readonly Figure[])[];
}

/** With a row of nothing in each pause: a line across it would tell of what nobody has measured. */
export function withPauses({ times, columns }: Timed): Timed {
  const isPause = (index: number): boolean => index > 0 && (times[index] ?? 0) - (times[index - 1] ?? 0) > pauseMs;
  if (!times.some((_, index) => isPause(index))) return { times, columns };
  const spread = (values: readonly Figure[], between: (index: number) => Figure): Figure[] =>
    values.flatMap((value, index) => (isPause(index) ? [between(index), value] : [value]));
  return {
    times: spread(times, (index) => (times[index - 1] ?? 0) + 1),
    columns: columns.map((values) => spread(values, () => null)),
  };
}

/** From zero up, with nothing above the chart: what is measured may exceed its limit for a moment. */
export function rangeOf(low: number, high: number, smallest = 0): [number, number] {
  const top = Math.max(high * 1.05, smallest);
  return [Math.min(low, 0), top === 0 ? 1 : top];
}
