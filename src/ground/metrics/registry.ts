import { labelPair, MetricText, type MetricType, numberText, withLabel } from "./metric-text.ts";

// Labels that outsiders could fill are cut off here, so that nobody can fill the memory with them.
const mostSeries = 10_000;

type LabelsOf<Name extends string> = Readonly<Record<Name, string>>;

/** Where a figure that is known at any time is read when somebody asks. */
export type ReadSeries<Name extends string> = () => Iterable<readonly [LabelsOf<Name>, number]>;

/**
 * Metrics that are counted as things happen, or read when somebody asks. A family without labels shows from the start;
 * one with labels shows the sets of labels that were used.
 */
export class MetricRegistry {
  readonly #families = new Map<string, Family<string>>();

  counter<Name extends string = never>(name: string, help: string, labels: readonly Name[] = []): Counter<Name> {
    return this.#add(new Counter<Name>(name, "counter", help, labels));
  }

  gauge<Name extends string = never>(name: string, help: string, labels: readonly Name[] = []): Gauge<Name> {
    return this.#add(new Gauge<Name>(name, "gauge", help, labels));
  }

  histogram<Name extends string = never>(
    name: string,
    help: string,
    buckets: readonly number[],
    labels: readonly Name[] = [],
  ): Histogram<Name> {
    return this.#add(new Histogram<Name>(name, help, buckets, labels));
  }

  /** A family whose series are known to somebody else. */
  read<Name extends string = never>(
    name: string,
    type: "counter" | "gauge",
    help: string,
    labels: readonly Name[],
    series: ReadSeries<Name>,
  ): void {
    this.#add(new ReadFamily<Name>(name, type, help, labels, series));
  }

  async write(text: MetricText): Promise<void> {
    for (const family of this.#families.values()) {
      family.write(text);
      await text.drain();
    }
  }

  /** All of it at once. */
  async text(): Promise<string> {
    let whole = "";
    const text = new MetricText(async (piece) => {
      whole += piece;
    });
    await this.write(text);
    await text.flush();
    return whole;
  }

  /** Starts all counting anew. */
  reset(): void {
    for (const family of this.#families.values()) family.reset();
  }

  #add<Kind extends Family<string>>(family: Kind): Kind {
    if (this.#families.has(family.name)) throw new Error(`The metric ${family.name} is defined twice`);
    this.#families.set(family.name, family);
    return family;
  }
}

abstract class Family<Name extends string> {
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  readonly #labels: readonly Name[];

  constructor(name: string, type: MetricType, help: string, labels: readonly Name[]) {
    this.name = name;
    this.type = type;
    this.help = help;
    this.#labels = labels.toSorted();
  }

  get isPlain(): boolean {
    return this.#labels.length === 0;
  }

  protected keyOf(labels: LabelsOf<Name>): string {
    let pairs = "";
    for (const name of this.#labels) pairs += `${pairs === "" ? "" : ","}${labelPair(name, labels[name])}`;
    return pairs === "" ? "" : `{${pairs}}`;
  }

  protected head(text: MetricText): void {
    text.family(this.name, this.type, this.help);
  }

  abstract write(text: MetricText): void;
  abstract reset(): void;
}

class Values<Name extends string> extends Family<Name> {
  protected readonly series = new Map<string, number>();

  constructor(name: string, type: MetricType, help: string, labels: readonly Name[]) {
    super(name, type, help, labels);
    this.reset();
  }

  protected put(key: string, value: number): void {
    if (this.series.has(key) || this.series.size < mostSeries) this.series.set(key, value);
  }

  /** Drops the series with these labels, whatever their others are. */
  forget(labels: Readonly<Partial<Record<Name, string>>>): void {
    dropMatching(this.series, labels);
  }

  write(text: MetricText): void {
    if (this.series.size === 0) return;
    this.head(text);
    for (const [labels, value] of this.series) text.sample(this.name, labels, value);
  }

  reset(): void {
    this.series.clear();
    if (this.isPlain) this.series.set("", 0);
  }
}

export class Counter<Name extends string = never> extends Values<Name> {
  inc(labels: LabelsOf<Name>, by = 1): void {
    const key = this.keyOf(labels);
    this.put(key, (this.series.get(key) ?? 0) + by);
  }
}

export class Gauge<Name extends string = never> extends Values<Name> {
  set(labels: LabelsOf<Name>, value: number): void {
    this.put(this.keyOf(labels), value);
  }

  add(labels: LabelsOf<Name>, by: number): void {
    const key = this.keyOf(labels);
    this.put(key, (this.series.get(key) ?? 0) + by);
  }
}

class ReadFamily<Name extends string> extends Family<Name> {
  readonly #series: ReadSeries<Name>;

  constructor(
    name: string,
    type: "counter" | "gauge",
    help: string,
    labels: readonly Name[],
    series: ReadSeries<Name>,
  ) {
    super(name, type, help, labels);
    this.#series = series;
  }

  write(text: MetricText): void {
    let isFirst = true;
    for (const [labels, value] of this.#series()) {
      if (isFirst) this.head(text);
      isFirst = false;
      text.sample(this.name, this.keyOf(labels), value);
    }
  }

  reset(): void {}
}

interface Distribution {
  /** How many fell into each bucket alone. */
  readonly counts: Uint32Array;
  sum: number;
  count: number;
}

export class Histogram<Name extends string = never> extends Family<Name> {
  readonly #buckets: readonly number[];
  readonly #series = new Map<string, Distribution>();

  constructor(name: string, help: string, buckets: readonly number[], labels: readonly Name[]) {
    super(name, "histogram", help, labels);
    this.#buckets = buckets;
    this.reset();
  }

  observe(labels: LabelsOf<Name>, value: number): void {
    const key = this.keyOf(labels);
    let series = this.#series.get(key);
    if (series === undefined) {
      if (this.#series.size >= mostSeries) return;
      series = this.#empty();
      this.#series.set(key, series);
    }
    series.sum += value;
    series.count++;
    const bucket = this.#buckets.findIndex((limit) => value <= limit);
    if (bucket >= 0) series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
  }

  /** Of all that was observed; undefined: nothing was. */
  mean(labels: LabelsOf<Name>): number | undefined {
    const series = this.#series.get(this.keyOf(labels));
    return series === undefined || series.count === 0 ? undefined : series.sum / series.count;
  }

  forget(labels: Readonly<Partial<Record<Name, string>>>): void {
    dropMatching(this.#series, labels);
  }

  write(text: MetricText): void {
    if (this.#series.size === 0) return;
    this.head(text);
    for (const [labels, { counts, sum, count }] of this.#series) {
      let below = 0;
      for (const [index, limit] of this.#buckets.entries()) {
        below += counts[index] ?? 0;
        text.sample(`${this.name}_bucket`, withLabel(labels, "le", numberText(limit)), below);
      }
      text.sample(`${this.name}_bucket`, withLabel(labels, "le", "+Inf"), count);
      text.sample(`${this.name}_sum`, labels, sum);
      text.sample(`${this.name}_count`, labels, count);
    }
  }

  reset(): void {
    this.#series.clear();
    if (this.isPlain) this.#series.set("", this.#empty());
  }

  #empty(): Distribution {
    return { counts: new Uint32Array(this.#buckets.length), sum: 0, count: 0 };
  }
}

function dropMatching(series: Map<string, unknown>, labels: Readonly<Partial<Record<string, string>>>): void {
  const wanted = Object.entries(labels).map(([name, value]) => labelPair(name, value ?? ""));
  for (const key of series.keys()) {
    if (wanted.every((pair) => key.includes(`{${pair}`) || key.includes(`,${pair}`))) series.delete(key);
  }
}
