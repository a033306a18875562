/** One line of a log, as it was written. */
export interface LogLine {
  readonly number: number;
  /** Which of the containers that were asked for; undefined: the agent says why there is no log. */
  readonly container: number | undefined;
  readonly time: string;
  /** The same as a number of seconds; of what has none, that of the line before. */
  readonly at: number;
  readonly text: string;
}

/** Lines of all containers as they were written, however they came; of equal times, as they came. */
export function inOrder(lines: readonly LogLine[]): readonly LogLine[] {
  const isSorted = lines.every((line, index) => index === 0 || (lines[index - 1]?.at ?? 0) <= line.at);
  return isSorted ? lines : lines.toSorted((a, b) => a.at - b.at);
}

/** Runtimes leave zeros at the end out, so that times can't be compared as texts. */
export function secondsOf(time: string): number | undefined {
  const [, whole, fraction = "", zone] = /^(.{19})(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(time) ?? [];
  const seconds = Date.parse(`${whole}${zone}`) / 1000;
  return Number.isNaN(seconds) ? undefined : seconds + Number(`0.${fraction}0`);
}
