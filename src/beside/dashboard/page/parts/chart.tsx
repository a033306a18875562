import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Figure } from "../../wire.ts";
import { rangeOf, withPauses } from "../chart-data.ts";
import { clockTime } from "../format.ts";
import { useTheme } from "../theme.ts";

export interface Line {
  readonly label: string;
  /** One of the colours of charts, 1 to 4. */
  readonly colour: number;
  readonly fill?: boolean;
  readonly values: readonly Figure[];
}

export interface ChartProps {
  readonly title: string;
  /** Milliseconds since 1970, growing. */
  readonly times: readonly Figure[];
  readonly lines: readonly Line[];
  readonly text: (value: number) => string;
  /** What the figures may not exceed; drawn as a line where it is near. */
  readonly limit?: number | undefined;
  /** What is older was told by another agent. */
  readonly from?: number;
  readonly height?: number;
  /** Bytes are divided where people would: at powers of two. */
  readonly isBytes?: boolean;
  /** Less than this can't be told apart by its text. */
  readonly smallest?: number;
}

/** Lines over time. Its label says the present values, for whoever can't see it. */
export function Chart(props: ChartProps) {
  const { title, times, lines, text, limit, from = 0, height = 130 } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const theme = useTheme();
  // Only these make another chart; values are set below.
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new uPlot(optionsOf(props, element, height), dataOf(times, lines, limit, from), element);
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [theme, limit, lines.length]);
  useEffect(() => {
    if (document.visibilityState === "visible") plot.current?.setData(dataOf(times, lines, limit, from));
  }, [times, lines, limit, from]);
  const present = lines.map(({ label, values }) => {
    const last = values.at(-1);
    return `${label} ${last === null || last === undefined ? "unknown" : text(last)}`;
  });
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="legend">
          {lines.map(({ label, colour, values }) => {
            const last = values.at(-1);
            return (
              <span key={label}>
                <span class={`swatch c${colour}`} aria-hidden="true" />
                {lines.length > 1 && `${label} `}
                <b>{last === null || last === undefined ? "–" : text(last)}</b>
              </span>
            );
          })}
        </span>
      </figcaption>
      <div ref={place} role="img" aria-label={`${title}: ${present.join(", ")}`} />
    </figure>
  );
}

/** The old agent's part and the present one's are lines of their own, so that they can be drawn differently. */
function dataOf(
  times: readonly Figure[],
  lines: readonly Line[],
  limit: number | undefined,
  from: number,
): uPlot.AlignedData {
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
    padding: [8, 6, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_, low, high) => rangeOf(low, high, 2 * smallest) } },
    axes: [
      { ...axis, space: 70, size: 24, values: (_, splits) => splits.map((at) => clockTime(at * 1000)) },
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

const powersOfTwo = Array.from({ length: 50 }, (_, power) => 2 ** power);
const decimals = [-3, -2, -1, 0, 1, 2, 3].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
