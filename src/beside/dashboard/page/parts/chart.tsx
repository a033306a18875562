import { useEffect, useRef, useState } from "preact/hooks";
import type { Figure } from "../../wire.ts";
import { useTheme } from "../theme.ts";
import type { Plot } from "./plot.ts";

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

type Plotting = typeof import("./plot.ts");

let loaded: Plotting | undefined;

/** Half of all that the first page takes; figures can be read before their lines are drawn. */
export async function loadPlotting(): Promise<Plotting> {
  loaded ??= await import("./plot.ts");
  return loaded;
}

/** Lines over time. Its label says the present values, for whoever can't see it. */
export function Chart(props: ChartProps) {
  const { title, times, lines, text, limit, from = 0, height = 130 } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | undefined>(undefined);
  const [plotting, setPlotting] = useState(loaded);
  const theme = useTheme();
  useEffect(() => {
    // What can't be loaded is tried again with the next figures.
    if (plotting === undefined) void loadPlotting().then(setPlotting, () => {});
  }, [plotting ?? times]);
  // Only these make another chart; values are set below.
  useEffect(() => {
    const element = place.current;
    if (element === null || plotting === undefined) return;
    const made = new plotting.Plot(props, element, height);
    plot.current = made;
    return () => {
      made.remove();
      plot.current = undefined;
    };
  }, [plotting, theme, limit, lines.length]);
  useEffect(() => {
    if (document.visibilityState === "visible") plot.current?.show(props);
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
      <div ref={place} style={{ minHeight: height }} role="img" aria-label={`${title}: ${present.join(", ")}`} />
    </figure>
  );
}
