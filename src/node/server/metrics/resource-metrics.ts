import { labelText, type MetricText, type MetricType } from "../../../ground/metrics/index.ts";
import type { NodeFigures } from "../stats/usage-figures.ts";
import type { UsageSample } from "../stats/usage-sampler.ts";

interface Row {
  readonly labels: string;
  readonly sample: UsageSample;
  readonly startedAt: number;
}

/** /metrics/resource: what autoscaling and `kubectl top` live on. Samples carry the time they were taken at. */
export async function writeResourceMetrics(text: MetricText, figures: NodeFigures | undefined): Promise<void> {
  if (figures !== undefined) {
    const containers = figures.pods.flatMap(({ name: pod, namespace, containers: all }) =>
      all.flatMap(({ name: container, sample, startedAt }): Row[] =>
        sample === undefined ? [] : [{ labels: labelText({ container, namespace, pod }), sample, startedAt }],
      ),
    );
    const pods = figures.pods.flatMap(({ name: pod, namespace, sample, startedAt }): Row[] =>
      sample === undefined ? [] : [{ labels: labelText({ namespace, pod }), sample, startedAt }],
    );
    const node: Row[] = [{ labels: "", sample: figures.node, startedAt: 0 }];
    writeUsage(text, "container", containers);
    writeContainersOnly(text, containers);
    await text.drain();
    writeUsage(text, "node", node);
    writeUsage(text, "pod", pods);
    await text.drain();
  }
  const error = "resource_scrape_error";
  text.family(error, "gauge", "[STABLE] 1 when the figures could not be taken, else 0");
  text.sample(error, "", figures === undefined ? 1 : 0);
}

function writeUsage(text: MetricText, what: "container" | "node" | "pod", rows: readonly Row[]): void {
  const family = (
    name: string,
    type: MetricType,
    help: string,
    figureOf: (sample: UsageSample) => number | undefined,
  ): void => writeFamily(text, { name: `${what}_${name}`, type, help }, rows, ({ sample }) => figureOf(sample));
  family("cpu_usage_seconds_total", "counter", `[STABLE] Core-seconds that the ${what} has used`, ({ cpu }) =>
    cpu === undefined ? undefined : cpu.usageNanoseconds / 1e9,
  );
  family(
    "memory_working_set_bytes",
    "gauge",
    `[STABLE] Memory of the ${what} that can't be given back at once`,
    ({ memory }) => memory?.workingSetBytes,
  );
  family("swap_usage_bytes", "gauge", `[ALPHA] Swap that the ${what} uses`, ({ memory }) => memory?.swapBytes);
}

function writeContainersOnly(text: MetricText, rows: readonly Row[]): void {
  const limit = { name: "container_swap_limit_bytes", help: "[ALPHA] Swap that the container may use" } as const;
  writeFamily(text, { ...limit, type: "gauge" }, rows, ({ sample }) => sample.memory?.swapLimitBytes);
  const name = "container_start_time_seconds";
  const started = rows.filter(({ startedAt }) => startedAt > 0);
  if (started.length === 0) return;
  text.family(name, "gauge", "[STABLE] When the container was started, in seconds since 1970");
  for (const { labels, startedAt } of started) text.sample(name, labels, startedAt / 1000);
}

function writeFamily(
  text: MetricText,
  { name, type, help }: { readonly name: string; readonly type: MetricType; readonly help: string },
  rows: readonly Row[],
  figureOf: (row: Row) => number | undefined,
): void {
  let isFirst = true;
  for (const row of rows) {
    const value = figureOf(row);
    if (value === undefined) continue;
    if (isFirst) text.family(name, type, help);
    isFirst = false;
    text.sample(name, row.labels, value, row.sample.at);
  }
}
