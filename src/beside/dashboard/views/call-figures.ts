import type { CallView, Figure } from "../wire.ts";

/** One line of metrics: its name, its labels and its value. */
interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

function* samplesIn(text: string, prefix: string): Iterable<Sample> {
  for (const line of text.split("\n")) {
    if (!line.startsWith(prefix)) continue;
    const [, name = "", labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    yield {
      name,
      labels: new Map([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = "", of = ""]) => [key, of])),
      value: Number(value),
    };
  }
}

/** What a histogram of the agent's metrics says, by one of its labels. `failures` is the family that counts those. */
export function callFigures(
  text: string,
  family: string,
  label: string,
  failures?: {
    readonly family: string;
    readonly isFailure?: (labels: ReadonlyMap<string, string>) => boolean;
    readonly label: string;
  },
): readonly CallView[] {
  const buckets = new Map<string, { readonly le: number; readonly count: number }[]>();
  const failed = new Map<string, number>();
  for (const { name, labels, value } of samplesIn(text, `${family}_bucket`)) {
    if (name !== `${family}_bucket`) continue;
    const key = labels.get(label) ?? "";
    const all = buckets.get(key) ?? [];
    const le = labels.get("le") === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.get("le"));
    // Families of several labels have buckets of each: those of one bound belong together.
    const known = all.findIndex((bucket) => bucket.le === le);
    if (known < 0) all.push({ le, count: value });
    else all[known] = { le, count: value + (all[known]?.count ?? 0) };
    buckets.set(key, all);
  }
  if (failures !== undefined) {
    for (const { name, labels, value } of samplesIn(text, failures.family)) {
      if (name !== failures.family || failures.isFailure?.(labels) === false) continue;
      const key = labels.get(failures.label) ?? "";
      failed.set(key, (failed.get(key) ?? 0) + value);
    }
  }
  return [...buckets].map(([name, all]) => {
    const sorted = all.toSorted((a, b) => a.le - b.le);
    return {
      name,
      count: sorted.at(-1)?.count ?? 0,
      failed: failed.get(name) ?? 0,
      p50: quantile(sorted, 0.5),
      p99: quantile(sorted, 0.99),
    };
  });
}

/** The bound of the bucket that the share of all falls in; null: beyond the last. */
function quantile(buckets: readonly { readonly le: number; readonly count: number }[], share: number): Figure {
  const whole = buckets.at(-1)?.count ?? 0;
  const bound = buckets.find(({ count }) => whole > 0 && count >= whole * share)?.le;
  return bound === undefined || !Number.isFinite(bound) ? null : bound;
}
