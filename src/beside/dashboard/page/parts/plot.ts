import uPlot from "uplot";
import { rangeOf, withPauses } from "../chart-data.ts";
import { clockTime } from "../format.ts";
import type { ChartProps } from "./chart.tsx";

/** The drawn lines of one chart, below an element that is theirs. */
export class Plot {
  readonly #made: uPlot;
  readonly #resized: ResizeObserver;

  constructor(props: ChartProps, element: HTMLElement, height: number) {
    const made = new uPlot(optionsOf(props, element, height), dataOf(props), element);
    this.#made = made;
    this.#resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    this.#resized.observe(element);
  }

  show(props: ChartProps): void {
    this.#made.setData(dataOf(props));
  }

  remove(): void {
    this.#resized.disconnect();
    this.#made.destroy();
  }
}

/** The old agent's part and the present one's are lines of their own, so that they can be drawn differently. */
function dataOf({ times, lines, limit, from = 0 }: ChartProps): uPlot.AlignedData {
  const isOld = (index: number): boolean => (times[index] ?? 0) < from;
  const columns = lines.flatMap(({ values }) => [
    values.map((value, index) => (isOld(index) ? value : null)),
    values.map((value, index) => (isOld(index) ? null : value)),
  ]);
  if (limit !== undefined) columns.push(times.map(() => limit));
  const spread = withPauses({ times, columns });
  return [spread.times.map((at) => (at ?? 0) / 1000), ...spread.columns] as uPlot.AlignedData;
}

function optionsOf(
  { lines, text, limit, isBytes = false, smallest = 0 }: ChartProps,
  element: HTMLElement,
  height: number,
): uPlot.Options {
  const style = getComputedStyle(element);
  // A canvas knows nothing of variables, nor of light and dark: the element is asked what it makes of them.
  const colour = (name: string): string => {
    element.style.color = `var(${name})`;
    const { color } = style;
    element.style.color = "";
    return color;
  };
  const muted = colour("--muted");
  const grid = { stroke: colour("--line"), width: 1 };
  const font = `11px ${style.fontFamily}`;
  const axis = { stroke: muted, grid, ticks: { show: false }, font } as const;
  const series = lines.flatMap(({ label, colour: number, fill }) => {
    const stroke = colour(`--chart-${number}`);
    const shared = { label, width: 1.5, points: { show: false }, spanGaps: false };
    return [
      { ...shared, stroke: colour("--faint"), dash: [3, 3] },
      { ...shared, stroke, ...(fill === true && { fill: stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.14)") }) },
    ];
  });
  return {
    width: element.clientWidth || 300,
    height,
    padding: [8, rightPadding, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_, low, high) => rangeOf(low, high, 2 * smallest) } },
    axes: [
      { ...axis, space: 70, size: 24, values: (made, splits) => splits.map((at) => timeAt(made, at)) },
      {
        ...axis,
        ...(isBytes && { incrs: powersOfTwo }),
        ...(smallest > 0 && { incrs: decimals.filter((step) => step >= smallest) }),
        space: 32,
        size: 62,
        values: (_, splits) => splits.map((value) => text(value)),
      },
    ],
    series: [
      {},
      ...series,
      ...(limit === undefined ? [] : [{ stroke: colour("--bad"), width: 1, dash: [6, 4], points: { show: false } }]),
    ],
  };
}

/** Half of what a time takes as text, in points: one that stands nearer to the edge would be cut off there. */
const halfOfTime = 26;

function timeAt(made: uPlot, at: number): string {
  return made.valToPos(at, "x") + halfOfTime > made.over.clientWidth + rightPadding ? "" : clockTime(at * 1000);
}

const rightPadding = 6;
const powersOfTwo = Array.from({ length: 50 }, (_, power) => 2 ** power);
const decimals = [-3, -2, -1, 0, 1, 2, 3].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
