/** One series of a scrape. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly at: number | undefined;
}

export interface MetricFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

const familyLine = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/;
const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)(?: (-?\d+))?$/;
const labelPart = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y;
const number = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|NaN|[+-]Inf)$/i;

/**
 * Reads Prometheus' text format and holds it to its rules: every line is one it knows, every family is told of once
 * and in one piece, no series comes twice, histograms are cumulative and whole.
 */
export function parseExposition(text: string): ReadonlyMap<string, MetricFamily> {
  const families = new Map<string, { name: string; type: string; help: string; samples: Sample[] }>();
  const seen = new Set<string>();
  let current: { name: string; type: string; help: string; samples: Sample[] } | undefined;
  const fail = (line: string, why: string): never => {
    throw new Error(`${why}: ${line}`);
  };
  if (text !== "" && !text.endsWith("\n")) fail(text.slice(-80), "the last line does not end");
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, kind, familyName = "", rest = ""] = familyLine.exec(line) ?? [];
    if (kind === "HELP") {
      if (families.has(familyName)) fail(line, "a family twice");
      current = { name: familyName, type: "", help: rest, samples: [] };
      families.set(familyName, current);
      continue;
    }
    if (kind === "TYPE") {
      if (current?.name !== familyName || current.type !== "") fail(line, "a type that does not follow its help");
      if (!["counter", "gauge", "histogram"].includes(rest)) fail(line, "an unknown type");
      if (current !== undefined) current.type = rest;
      continue;
    }
    const [, name = fail(line, "not a line of the format"), labelText = "", value = "", at] =
      sampleLine.exec(line) ?? [];
    if (!number.test(value)) fail(line, "not a number");
    const suffix = current?.type === "histogram" ? /_(bucket|sum|count)$/.exec(name)?.[0] : "";
    if (suffix === undefined || name !== `${current?.name}${suffix}`) fail(line, "a sample outside of its family");
    const key = `${name}${labelText}`;
    if (seen.has(key)) fail(line, "a series twice");
    seen.add(key);
    current?.samples.push({
      name,
      labels: parseLabels(labelText),
      value: Number(value.replace(/Inf$/, "Infinity")),
      at: at === undefined ? undefined : Number(at),
    });
  }
  for (const family of families.values()) check(family);
  return families;
}

function parseLabels(text: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  const inner = text.slice(1, -1);
  labelPart.lastIndex = 0;
  while (labelPart.lastIndex < inner.length) {
    const before = labelPart.lastIndex;
    const [, name = "", value = ""] = labelPart.exec(inner) ?? [];
    if (name === "" || name in labels) throw new Error(`bad labels at ${before}: ${text}`);
    labels[name] = value.replace(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));
  }
  return labels;
}

function check({ name, type, samples }: MetricFamily): void {
  if (samples.length === 0) throw new Error(`the family ${name} has no series`);
  if (type === "counter" && samples.some(({ value }) => !(value >= 0)))
    throw new Error(`the counter ${name} is below 0`);
  if (type !== "histogram") return;
  const last = new Map<string, number>();
  for (const { name: sample, labels, value } of samples) {
    const { le, ...others } = labels;
    const key = JSON.stringify(others);
    if (sample === `${name}_bucket`) {
      if (le === undefined) throw new Error(`a bucket of ${name} without its bound`);
      if (value < (last.get(key) ?? 0)) throw new Error(`the buckets of ${name} shrink`);
      last.set(key, value);
    } else if (sample === `${name}_count` && value !== last.get(key)) {
      throw new Error(`the buckets of ${name} do not add up to its count`);
    }
  }
}

/** The value of the one series of a family that has these labels. */
export function metricValue(
  families: ReadonlyMap<string, MetricFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const found = seriesOf(families, name, labels);
  if (found.length !== 1) throw new Error(`${found.length} series of ${name} have ${JSON.stringify(labels)}`);
  return found[0]?.value ?? Number.NaN;
}

export function seriesOf(
  families: ReadonlyMap<string, MetricFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): readonly Sample[] {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ""));
  const wanted = Object.entries(labels);
  return (family?.samples ?? []).filter(
    (sample) => sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value),
  );
}

/** What every counter of an earlier scrape must hold to in a later one: still there, and not smaller. */
export function shrunkCounters(
  before: ReadonlyMap<string, MetricFamily>,
  after: ReadonlyMap<string, MetricFamily>,
): readonly string[] {
  return [...before.values()]
    .filter(({ type }) => type === "counter" || type === "histogram")
    .flatMap(({ samples }) => samples)
    .filter(({ name }) => !name.endsWith("_sum"))
    .filter(({ name, labels, value }) => {
      const [later] = seriesOf(after, name, labels);
      return later !== undefined && later.value < value;
    })
    .map(({ name, labels }) => `${name}${JSON.stringify(labels)}`);
}
