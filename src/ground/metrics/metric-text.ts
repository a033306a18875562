export type MetricType = "counter" | "gauge" | "histogram";
export type Labels = Readonly<Record<string, string>>;

const flushChars = 64 * 1024;

/** Takes a piece of text; resolves when more may come. */
export type MetricSink = (text: string) => Promise<void>;

/** Writes metrics in Prometheus' text format, in pieces, so that a large answer never lies in memory as a whole. */
export class MetricText {
  readonly #sink: MetricSink;
  #text = "";

  constructor(sink: MetricSink) {
    this.#sink = sink;
  }

  family(name: string, type: MetricType, help: string): void {
    this.#text += `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`;
  }

  /** `labels` as from `labelText`; a time is in milliseconds. */
  sample(name: string, labels: string, value: number, atMs?: number): void {
    this.#text += `${name}${labels} ${numberText(value)}${atMs === undefined ? "" : ` ${Math.round(atMs)}`}\n`;
  }

  /** To be awaited between families: lets a slow reader catch up. */
  async drain(): Promise<void> {
    if (this.#text.length >= flushChars) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.#text === "") return;
    const text = this.#text;
    this.#text = "";
    await this.#sink(text);
  }
}

/** `{a="b",c="d"}` by name, which readers that know the order rely on; nothing when there are no labels. */
export function labelText(labels: Labels): string {
  const names = Object.keys(labels).sort();
  return names.length === 0 ? "" : `{${names.map((name) => labelPair(name, labels[name] ?? "")).join(",")}}`;
}

export function labelPair(name: string, value: string): string {
  return `${name}="${escapeLabel(value)}"`;
}

/** The same labels and one more. */
export function withLabel(text: string, name: string, value: string): string {
  const pair = labelPair(name, value);
  return text === "" ? `{${pair}}` : `${text.slice(0, -1)},${pair}}`;
}

function escapeLabel(value: string): string {
  return /[\\"\n]/.test(value) ? value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n") : value;
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

export function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return String(value);
}
